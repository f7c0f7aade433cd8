"""What `sm setup` does to the client's own settings file, and how it is taken back."""
