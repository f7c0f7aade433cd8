"""The live screen of all sessions (`sm watch`). It knows the server by its HTTP API alone, and loads Textual."""
