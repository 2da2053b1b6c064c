//! The messages of `protocol/README.md` as types, for every engine binary.
