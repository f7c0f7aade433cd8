"""What `sm doctor` looks at, one function per check."""
