"""The pass `reinplace`: which boxes of an array change, and updates where they lie."""
