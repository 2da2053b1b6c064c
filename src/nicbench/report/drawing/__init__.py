"""The charts of a page: each is defined once and drawn as inline SVG that takes its colours from the page."""
