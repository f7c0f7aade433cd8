"""The page of `sm web`: HTML made on the server, which a browser shows and keeps up to date."""
