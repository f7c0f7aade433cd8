"""The tools by which an agent whose shell is sandboxed runs its own commands of `sm`."""
