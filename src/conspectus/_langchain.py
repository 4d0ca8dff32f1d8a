"""Recognise LangChain's and LangGraph's types without an import of either.

An object can only have a class whose module is loaded. To import LangChain's messages takes half a
second; callers who pass dicts do not need them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
    from langchain_core.runnables import Runnable
    from langgraph.store.base import BaseStore
    from typing_extensions import TypeIs

    T = TypeVar("T")
    Is = Callable[[object], TypeIs[T]]


def known(module: str, name: str) -> type | tuple[()]:
    """Return a class of a loaded module, or an empty tuple."""
    # While another thread imports a module, the module may not have the class yet.
    return getattr(sys.modules.get(module), name, ())


_NAME_FIELDS = ("model_name", "model", "model_id", "azure_deployment", "deployment_name")
_MAX_WRAPPERS = 8  # most wrappers around a model, which might form a circle
_message_classes: set[type] = set()  # classes that are known to be of messages


def is_message(value: object) -> TypeIs[BaseMessage]:
    """Tell whether a value is a message of LangChain."""
    value_class = type(value)
    if value_class is dict:
        return False
    if value_class in _message_classes:
        return True
    if isinstance(value, known("langchain_core.messages.base", "BaseMessage")):
        _message_classes.add(value_class)
        return True
    return False


def _is(module: str, name: str) -> Any:
    """Make a function that tells whether a value has a class, which need not be loaded."""
    return lambda value: isinstance(value, known(module, name))


is_ai_message: Is[AIMessage] = _is("langchain_core.messages.ai", "AIMessage")
is_tool_message: Is[ToolMessage] = _is("langchain_core.messages.tool", "ToolMessage")
is_chat_model: Is[BaseChatModel] = _is(
    "langchain_core.language_models.chat_models", "BaseChatModel"
)
is_runnable: Is[Runnable[Any, Any]] = _is("langchain_core.runnables.base", "Runnable")
is_store: Is[BaseStore] = _is("langgraph.store.base", "BaseStore")


def innermost(model: Any) -> Any:
    """Return the model inside bound tools, retries and settings."""
    for _ in range(_MAX_WRAPPERS):
        bound = getattr(model, "bound", None)
        if not bound:
            break
        model = bound
    return model


def named(model: object) -> str:
    """Return the name of a model; empty if unknown."""
    inner = innermost(model)
    names = [inner, *(getattr(inner, field, None) for field in _NAME_FIELDS)]
    return next((name for name in names if name and isinstance(name, str)), "")


def without_streams(callbacks: Any) -> Any:
    """Return a run's callbacks without the handlers that stream tokens and events to the user."""
    streaming = known("langchain_core.tracers._streaming", "_StreamingCallbackHandler")
    if isinstance(callbacks, list):
        return [handler for handler in callbacks if not isinstance(handler, streaming)]
    quiet = callbacks.copy()
    for name in ("handlers", "inheritable_handlers"):
        handlers = getattr(quiet, name)
        kept = [handler for handler in handlers if not isinstance(handler, streaming)]
        setattr(quiet, name, kept)
    return quiet


def kept_config(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the config of a run for work that may outlive it.

    Callbacks, tags, metadata and the caller's own settings stay. Handlers that stream to the user
    are removed, and so are LangGraph's references to the step, which ends earlier.
    """
    if not config:
        return None
    kept = dict(config)
    if kept.get("callbacks") is not None:
        kept["callbacks"] = without_streams(kept["callbacks"])
    settings = dict(kept.get("configurable") or {})
    runtime: Any = settings.get("__pregel_runtime")
    callers = {name: value for name, value in settings.items() if not name.startswith("__pregel_")}
    if hasattr(runtime, "override"):
        callers["__pregel_runtime"] = runtime.override(stream_writer=lambda _: None)
    return {**kept, "configurable": callers}


def begun_beside(config: dict[str, Any] | None, name: str) -> Callable[[dict[str, Any]], object]:
    """Begin a run as a child of a config's run; return a function that ends it with its outputs.

    The step of the config ends earlier. Tracers add a call to a trace only while the parent run is
    open, so later calls become children of this run.
    """
    callbacks: Any = (config or {}).get("callbacks")
    if config is None or not hasattr(callbacks, "inheritable_handlers"):
        return lambda _: None
    from langchain_core.callbacks import AsyncCallbackHandler, CallbackManager

    def sync_only(handlers: Iterable[Any]) -> list[Any]:
        return [handler for handler in handlers if not isinstance(handler, AsyncCallbackHandler)]

    manager = CallbackManager(
        sync_only(callbacks.handlers),
        inheritable_handlers=sync_only(callbacks.inheritable_handlers),
        parent_run_id=callbacks.parent_run_id,
        tags=callbacks.tags,
        inheritable_tags=callbacks.inheritable_tags,
        metadata=callbacks.metadata,
        inheritable_metadata=callbacks.inheritable_metadata,
    )
    run = manager.on_chain_start({"name": name}, {}, name=name)
    below = callbacks.copy()
    below.parent_run_id = run.run_id
    config["callbacks"] = below
    return run.on_chain_end


def hide_from_streams(messages: Iterable[Any]) -> bool:
    """Keep messages that a step writes, and a removal of all, out of `stream_mode="messages"`.

    LangGraph shows every message of a node's update that it has not seen, but a summary or a
    removal is not part of the chat. Its handlers recognise messages by id; other handlers show all.
    Tell whether there is a handler of LangGraph.
    """
    config_module = sys.modules.get("langchain_core.runnables.config")
    config = (config_module and config_module.var_child_runnable_config.get()) or {}
    handlers = getattr(config.get("callbacks"), "handlers", None) or ()
    streaming = [
        handler for handler in handlers if hasattr(handler, "stream") and hasattr(handler, "seen")
    ]
    if streaming:
        ids = {"__remove_all__", *(message.id for message in messages)}
        for handler in streaming:
            handler.seen.update(ids)
    return bool(streaming)
