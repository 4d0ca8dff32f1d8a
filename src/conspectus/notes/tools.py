"""What is known of tools: which argument names the thing, which shows most, what has an effect.

The table holds tools that many agents have. A caller's own tools are added with `tools=`; what a
tool says of itself (`readOnlyHint` of MCP) counts where the table has nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conspectus.notes.cutting import differing


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, as the notes show it.

    Args:
        name: its name, compared without regard to case; a `*` at its end stands for any rest.
        key: the argument that names the thing it works on; it is never cut before the others.
        show: arguments that are shown next; the rest follow as they were given. Of two that begin
            or end alike, such as an old and a new text, that part is left out.
        effect: whether a call changes anything. What only looks gives way first.
        todo: the argument that holds the agent's whole to-do list; empty for none.

    Example:
        >>> Tool("edit_file", key="path", show=("old", "new"), effect=True).key
        'path'
    """

    name: str
    key: str = ""
    show: tuple[str, ...] = ()
    effect: bool | None = None
    todo: str = ""

    def ordered(self, args: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return arguments in the order in which they are shown."""
        places = {name: place for place, name in enumerate((self.key, *self.show))}
        args = sorted(args, key=lambda arg: places.get(arg[0], len(places)))
        pair = [place for place, (name, _) in enumerate(args) if name in self.show]
        if len(pair) == 2:
            values = differing(args[pair[0]][1], args[pair[1]][1])
            for place, value in zip(pair, values, strict=True):
                args[place] = (args[place][0], value)
        return args


_READ = ("read_file", "read", "view", "view_file", "cat_file", "open_file", "notebookread")
_WRITE = ("write_file", "write", "create_file", "notebookedit")
_EDIT = ("edit_file", "edit", "str_replace", "multiedit", "apply_patch", "insert")
_OLD_NEW = ("old", "new", "old_str", "new_str", "old_string", "new_string")
_LIST = ("list_files", "ls", "list_dir", "list_directory", "glob", "file_glob_search")
_SEARCH = ("grep", "search", "search_files", "web_search", "websearch", "google_search")
_FETCH = ("web_fetch", "webfetch", "fetch", "fetch_url")
_LOOKS = ("get", "list", "read", "search", "find", "fetch", "view", "query", "calculate", "think")
_TODO = ("write_todos", "todowrite", "todo_write", "update_todos")

TOOLS: tuple[Tool, ...] = (
    *(Tool(name, key="path", effect=False) for name in (*_READ, *_LIST)),
    *(Tool(name, key="path", effect=True) for name in _WRITE),
    *(Tool(name, key="path", show=_OLD_NEW, effect=True) for name in _EDIT),
    *(Tool(name, key="query", effect=False) for name in _SEARCH),
    *(Tool(name, key="url", effect=False) for name in _FETCH),
    *(Tool(name, key="todos", effect=False, todo="todos") for name in _TODO),
    Tool("update_plan", key="plan", effect=False, todo="plan"),
    *(Tool(f"{name}*", effect=False) for name in _LOOKS),
)

_UNKNOWN = Tool("")


class ToolTable:
    """Tools by name: a caller's own before those of the table, then what tools say of themselves.

    Args:
        own: tools that a caller has described.
    """

    def __init__(self, own: Iterable[Tool] = ()) -> None:
        tools = (*TOOLS, *own)
        self._tools = {tool.name.casefold(): tool for tool in tools if tool.name[-1:] != "*"}
        self._openings = [tool for tool in reversed(tools) if tool.name[-1:] == "*"]
        self._hints: dict[str, Tool] = {}

    def learn(self, tools: Iterable[object]) -> None:
        """Take over MCP's `readOnlyHint` from the metadata of an agent's tools."""
        for tool in tools:
            metadata, name = getattr(tool, "metadata", None), getattr(tool, "name", "")
            hint = metadata.get("readOnlyHint") if isinstance(metadata, dict) else None
            if isinstance(hint, bool):
                self._hints[str(name).casefold()] = Tool(str(name), effect=not hint)

    def __getitem__(self, name: str) -> Tool:
        name = name.casefold()
        openings = (one for one in self._openings if name.startswith(one.name[:-1].casefold()))
        return self._tools.get(name) or self._hints.get(name) or next(openings, _UNKNOWN)
