"""A table of tools: which arguments of a call the notes show, and whether a call changes anything.

The table has tools that many agents use. `tool_table=` adds a caller's own. For a tool that is not
in the table, its own description counts (`readOnlyHint` of MCP).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conspectus.errors import PolicyError

PATHS = ("path", "file_path", "filename", "file", "target_file", "filepath", "notebook_path")
"""Names of the argument that tells which file a tool works on."""

ALIKE_NAMES = (PATHS, ("query", "pattern"), ("url", "uri"))
"""Groups of names that stand for each other as the key of a tool."""


@dataclass(frozen=True, slots=True)
class Tool:
    """How the notes show the calls of one tool.

    Args:
        name: the name of the tool, in small or capital letters. A `*` at its end matches any
            ending.
        key: the argument that names what the call works on, such as `path`. Arguments with a
            similar name, such as `file_path`, count, too. This argument is shown first.
        show: arguments that are shown next. All others follow, in the order of the call.
        effect: whether a call changes anything. If the room is short, lines of calls that change
            nothing are shortened first. Default: None (unknown).
        todo: the argument that has the agent's to-do list; empty if there is none.
        asks: whether the tool asks the user. Then its result counts as words of the user.

    Raises:
        PolicyError: an argument has a wrong type.

    Example:
        >>> Tool("edit_file", key="path", show=("old", "new"), effect=True).key
        'path'
    """

    name: str
    key: str = ""
    show: tuple[str, ...] = ()
    effect: bool | None = None
    todo: str = ""
    asks: bool = False
    places: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """The place of each argument that is shown before the others."""

    def __post_init__(self) -> None:
        shown_are_names = isinstance(self.show, tuple) and all(
            isinstance(name, str) for name in self.show
        )
        names_are_texts = all(isinstance(name, str) for name in (self.name, self.key, self.todo))
        if not (shown_are_names and names_are_texts and self.effect in (True, False, None)):
            raise PolicyError(
                f"{self!r} is no tool: name, key and todo are texts, show is a tuple of names of "
                "arguments, and effect is True, False or None"
            )

        alike = next((names for names in ALIKE_NAMES if self.key in names), (self.key,))
        shown_first = dict.fromkeys((self.key, *alike, *self.show))
        places = {name: place for place, name in enumerate(shown_first)}
        object.__setattr__(self, "places", places)


_LOOKS = (
    ("path", "read_file read view view_file cat_file open_file notebookread"),
    ("path", "list_files ls list_dir list_directory glob file_glob_search"),
    ("query", "grep search search_files web_search websearch google_search"),
    ("url", "web_fetch webfetch fetch fetch_url"),
    ("", "get* list* read* search* find* fetch* view* query* calculate* think*"),
)
_WRITES = "write_file write create_file notebookedit"
_EDITS = "edit_file edit str_replace multiedit apply_patch insert"
_ASKS = (
    "askuserquestion ask_user ask_user_question ask_question ask_followup_question ask_human "
    "human_input human_assistance request_user_input"
)
_OLD_NEW = ("old", "new", "old_str", "new_str", "old_string", "new_string")

TOOLS: tuple[Tool, ...] = (
    *(Tool(name, key, effect=False) for key, names in _LOOKS for name in names.split()),
    *(Tool(name, "path", effect=True) for name in _WRITES.split()),
    *(Tool(name, "path", _OLD_NEW, effect=True) for name in _EDITS.split()),
    *(Tool(name, effect=False, asks=True) for name in _ASKS.split()),
    *(Tool(name, "todos", effect=False, todo="todos") for name in
      ("write_todos", "todowrite", "todo_write", "update_todos")),
    Tool("update_plan", "plan", effect=False, todo="plan"),
)  # fmt: skip


class ToolTable(dict[str, Tool]):
    """Tools by name: a caller's own, those of the table, and what tools say of themselves.

    Names with a `*` are tried last.

    Args:
        own: tools that a caller has described.

    Attributes:
        identity: the caller's own tools as a text; empty if there is none.
    """

    def __init__(self, own: Iterable[Tool] = ()) -> None:
        self._own = {tool.name.casefold(): tool for tool in own}
        self._hints: dict[str, Tool] = {}
        self.identity = repr([*self._own.values()]) if self._own else ""
        super().__init__({name: self[name] for name in (*_TABLE, *self._own)})

    def learn(self, tools: Iterable[object]) -> None:
        """Take over MCP's `readOnlyHint` from the metadata of an agent's tools."""
        for tool in tools:
            metadata = getattr(tool, "metadata", None)
            name = str(getattr(tool, "name", ""))
            hint = metadata.get("readOnlyHint") if isinstance(metadata, dict) else None
            if isinstance(hint, bool):
                self._hints[name.casefold()] = Tool(name, effect=not hint)

    def __missing__(self, name: str) -> Tool:
        name = name.casefold()
        own = self._own.get(name) or _tool_by_prefix(self._own, name) if self._own else None
        known = own or _TABLE.get(name) or self._hints.get(name) or _tool_by_prefix(_TABLE, name)
        return known or _UNKNOWN


_UNKNOWN = Tool("")
_TABLE = {tool.name.casefold(): tool for tool in TOOLS}


def _tool_by_prefix(tools: Mapping[str, Tool], name: str) -> Tool | None:
    """Return the last tool whose name ends with a `*` and matches the beginning of a name."""
    for pattern, tool in reversed([*tools.items()]):
        if pattern.endswith("*") and name.startswith(pattern[:-1]):
            return tool
    return None
