"""What the screen knows of the server: requests, the stream of events, and the last picture of all sessions."""
