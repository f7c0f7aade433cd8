"""Commands of sm as processes of their own: with their output shown, or in the terminal itself."""
