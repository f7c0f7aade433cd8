"""The page for browsers: who gets in (`access`), its routes, and the headers of each of its answers."""
