"""The checks of `sm doctor`, one function each."""
