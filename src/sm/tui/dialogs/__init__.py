"""What a key asks before it acts: each dialog orders one thing of the server and says what came of it."""
