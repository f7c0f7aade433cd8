"""`python -I -m sm.agent_tools`, as the client starts it, with a session's variables in its environment."""

from sm.agent_tools.server import main

if __name__ == "__main__":
    main()
