"""From a method's wish to a judged, repeated and journaled trial."""
