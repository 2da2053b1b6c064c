"""The base of every frozen model: immutable, and unknown keys are refused."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable record. Unknown is ``None``, never zero."""

    model_config = ConfigDict(frozen=True, extra="forbid")
