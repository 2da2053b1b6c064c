"""Tests of the pages in the browser: what the server answers, and what a browser makes of it."""
