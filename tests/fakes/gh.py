"""A stand-in for the GitHub CLI: issues, labels and who may write are in the JSON file that GH_STATE names.

Run as a program. It knows the calls that are made of it and refuses every other one, as `gh` does an unknown option.
"""

import json
import os
import sys
from pathlib import Path

ASSOCIATIONS = {"admin": "OWNER", "write": "COLLABORATOR", "read": "CONTRIBUTOR"}


def install(directory):
    """Put it into a directory under its own name; return what it needs in the environment."""
    directory.mkdir()
    program = directory / "gh"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{__file__}" "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{directory}:/usr/bin:/bin", "GH_STATE": str(directory / "state.json")}


def issue(number, title, body="", **others):
    """An issue as the program keeps it."""
    return {
        "number": number,
        "title": title,
        "body": body,
        "labels": ["sm"],
        "author": "owner",
        "state": "OPEN",
        "stateReason": "",
        "comments": [],
        **others,
    }


def state(*issues, **others):
    return {
        "viewer": "owner",
        "permissions": {"owner": "admin", "member": "write", "reader": "read"},
        "labels": ["sm"],
        "issues": {str(found["number"]): found for found in issues},
        "calls": [],
        **others,
    }


def main(arguments):
    path = Path(os.environ["GH_STATE"])
    known = json.loads(path.read_text())
    known["calls"].append(arguments)
    known["repository"] = os.environ.get("GH_REPO", "")
    try:
        match arguments:
            case ["issue", "list", "--label", label, "--state", "all", "--limit", _, "--json", _]:
                show([view(known, found) for found in known["issues"].values() if label in found["labels"]])
            case ["issue", "view", number, "--json", _]:
                show(view(known, found_in(known, number)))
            case ["api", route] if route.startswith("repos/{owner}/{repo}/collaborators/"):
                show({"permission": permission(known, route.split("/")[4])})
            case ["issue", "comment", number, "--body-file", "-"]:
                body = sys.stdin.read()
                found_in(known, number)["comments"].append({"author": known["viewer"], "body": body})
            case ["issue", "edit", number, *options]:
                relabel(known, found_in(known, number), options)
            case ["label", "create", name, "--description", _]:
                known["labels"].append(name)
            case _:
                fail(f"unknown command {arguments}")
    finally:
        path.write_text(json.dumps(known))


def show(data):
    sys.stdout.write(json.dumps(data))


def fail(words):
    sys.stderr.write(f"{words}\n")
    raise SystemExit(1)


def found_in(known, number):
    return known["issues"].get(number) or fail(
        f"GraphQL: Could not resolve to an issue or pull request with the number of {number}."
    )


def permission(known, login):
    if known.get("down"):
        fail("gh: Server Error (HTTP 502)")
    return known["permissions"].get(login) or fail("gh: Not Found (HTTP 404)")


def relabel(known, found, options):
    pairs = list(zip(options[::2], options[1::2], strict=True))
    for option, name in pairs:
        if option == "--add-label" and name not in known["labels"]:
            fail(f"failed to update https://github.com/o/r/issues/1: '{name}' not found\nfailed to update 1 issue")
    for option, name in pairs:
        if option == "--add-label":
            found["labels"].append(name)
        else:
            found["labels"].remove(name)


def view(known, found):
    comments = [
        {
            "author": {"login": comment["author"]},
            "authorAssociation": ASSOCIATIONS.get(known["permissions"].get(comment["author"]), "NONE"),
            "body": comment["body"],
            "viewerDidAuthor": comment["author"] == known["viewer"],
        }
        for comment in found["comments"]
    ]
    labels = [{"name": name} for name in found["labels"]]
    author = {"login": found["author"]} if found["author"] else None
    url = f"https://github.com/o/r/issues/{found['number']}"
    return {**found, "labels": labels, "author": author, "comments": comments, "url": url}


if __name__ == "__main__":
    main(sys.argv[1:])
