"""One fact a file, found by the registry; modules that begin with an underscore are what facts share."""
