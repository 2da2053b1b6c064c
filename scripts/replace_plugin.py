"""A plugin of mypy: checks the arguments of ``Frozen.replace`` (``core/base.py``) against the fields of the model."""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import ARG_NAMED_OPT, Var
from mypy.plugin import MethodSigContext, Plugin
from mypy.types import FunctionLike, Instance, Type, get_proper_type

_FROZEN = "nicbench.core.base.Frozen"


def _signature(context: MethodSigContext) -> FunctionLike:
    """Returns the signature of ``replace`` with a keyword for each field of the model that it is called on."""
    model = get_proper_type(context.type)
    if not isinstance(model, Instance):
        return context.default_signature
    fields: dict[str, Type] = {}
    for base in model.type.mro[: [each.fullname for each in model.type.mro].index(_FROZEN)]:
        for name, symbol in base.names.items():
            node = symbol.node
            if isinstance(node, Var) and node.type is not None and not node.is_classvar:
                fields.setdefault(name, node.type)
    if not fields:  # some model of a plug-in, whose names are checked at run time
        return context.default_signature
    return context.default_signature.copy_modified(
        arg_types=[*fields.values()], arg_kinds=[ARG_NAMED_OPT] * len(fields), arg_names=[*fields]
    )


class ReplacePlugin(Plugin):
    """Gives ``replace`` the signature of the model's fields."""

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        owner, _, method = fullname.rpartition(".")
        if method != "replace":
            return None
        known = self.lookup_fully_qualified(owner)
        node = known.node if known is not None else None
        bases = getattr(node, "mro", ())
        return _signature if any(base.fullname == _FROZEN for base in bases) else None


def plugin(_version: str) -> type[Plugin]:
    """The entry point that mypy calls."""
    return ReplacePlugin
