"""The base of every frozen model: immutable, and unknown keys are refused."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable record. Unknown is ``None``, never zero.

    Its validator is built when it is first used: a command loads many models and uses few.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
