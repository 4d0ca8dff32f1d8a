"""Run `create_deep_agent` of Deep Agents with our middleware in place of its own.

With Deep Agents' own function, a caller can replace the summarisation only in the main agent and
the general-purpose subagent, and cannot put middleware last. So that function runs here in a copy
in which three names of its module are bound to ours. A version that does not use these names is
refused, and a test compares the two agents part by part.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from types import FunctionType
from typing import Any

import deepagents.graph as real
import deepagents.middleware as parts
from deepagents import __version__ as version
from deepagents.middleware.subagents import SubAgentMiddleware as RealSubAgentMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware as Replaced
from deepagents.middleware.summarization import SummarizationToolMiddleware

from conspectus._arguments import unknown_argument
from conspectus.deep_agents.middleware import DeepAgentsSummarization
from conspectus.errors import PolicyError, install_command
from conspectus.langchain import ContextGuard, SummarizationMiddleware
from conspectus.observe import log

# Earlier versions do not have this middleware. Later ones put it last into each subagent without
# it.
UnsupportedContentMiddleware: Any = getattr(parts, "UnsupportedContentMiddleware", None)

ORIGINAL = real.create_deep_agent
"""Deep Agents' own function, for callers that replace it by ours."""


@wraps(ORIGINAL, assigned=())  # the signature
def create_deep_agent(*args: Any, **kwargs: Any) -> Any:
    """Make an agent as `deepagents.create_deep_agent` does, with our summarisation.

    It takes the same parameters. It replaces the summarisation of Deep Agents by
    `SummarizationMiddleware(history="preserve")` in the main agent, in the general-purpose
    subagent, and in every declared subagent. Each of these agents uses the limits of its own model,
    has its own session, and gets a `ContextGuard` as its last middleware. If the `middleware` of a
    subagent has its own summarisation, the subagent keeps it. Compiled and remote subagents are not
    changed.

    To change settings, put a `summarization_middleware(model, backend, ...)` into `middleware`; the
    subagents use these settings, too. Originals are archived in the archive of that middleware, or
    in `store`. Without either, they stay in the state, and summaries cite no ids.

    Raises:
        ImportError: the installed version of Deep Agents is built in a way that is not known here.
        PolicyError: a setting is invalid, or `middleware` has the `SummarizationToolMiddleware` of
            Deep Agents; use `compact_tool=True` instead.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> class Model(FakeListChatModel):
        ...     def bind_tools(self, tools, **options):
        ...         return self
        >>> agent = create_deep_agent(Model(responses=["hello"]))
        >>> agent.invoke({"messages": [("user", "hi")]})["messages"][-1].text
        'hello'
    """
    parameters = inspect.signature(ORIGINAL).parameters
    if unknown := kwargs.keys() - parameters:
        raise unknown_argument("create_deep_agent", min(unknown), parameters)
    stack = kwargs.get("middleware") or ()
    if _first(stack, SummarizationToolMiddleware) and not _first(stack, Replaced):
        raise PolicyError(
            "SummarizationToolMiddleware of Deep Agents works with its own summarisation only; put "
            "our summarization_middleware(model, backend, compact_tool=True) in its place"
        )
    foreign = (part for part in stack if not isinstance(part, SummarizationMiddleware))
    if "SummarizationMiddleware" in (getattr(part, "name", "") for part in foreign):
        log("replaced", "another summarisation takes our place, nothing is archived: leave it out")
    return _rebound(_first(stack, DeepAgentsSummarization))(*args, **kwargs)


def _first(stack: Iterable[Any], kind: type[Any]) -> Any:
    """Return the first middleware of a class in a stack; None if there is none."""
    return next((part for part in stack if isinstance(part, kind)), None)


def _rebound(template: DeepAgentsSummarization | None) -> Callable[..., Any]:
    """Copy their function, with three global names bound to ours."""

    def create_summarization_middleware(model: Any, backend: Any) -> Any:
        return template.for_model(model) if template else DeepAgentsSummarization(model, backend)

    class SubAgentMiddleware(RealSubAgentMiddleware):
        """The middleware of Deep Agents, with guarded subagents."""

        def __init__(self, *, subagents: Sequence[Any], **options: Any) -> None:
            specs: list[Any] = [_spec_with_guard(spec, template) for spec in subagents]
            super().__init__(subagents=specs, **options)

    def create_agent(*args: Any, middleware: Sequence[Any] = (), **kwargs: Any) -> Any:
        return vars(real)["create_agent"](*args, middleware=_with_guard(middleware), **kwargs)

    functions = (create_summarization_middleware, SubAgentMiddleware, create_agent)
    names = {function.__name__: function for function in functions}
    original = inspect.unwrap(ORIGINAL)
    is_known = isinstance(original, FunctionType) and names.keys() <= {*original.__code__.co_names}
    if not is_known:
        raise ImportError(
            f"deepagents {version} is built in a way that is not known here; install another by "
            f"{install_command('deepagents')}, or put summarization_middleware into `middleware`"
        )
    bindings = original.__globals__ | names
    warn = bindings.get("warn_deprecated")
    if warn:  # the warning names the caller's line, which is one call further out
        bindings["warn_deprecated"] = partial(warn, stacklevel=3)
    copy = FunctionType(original.__code__, bindings, closure=original.__closure__)
    copy.__defaults__ = original.__defaults__
    copy.__kwdefaults__ = original.__kwdefaults__
    return copy


def _with_guard(stack: Sequence[Any]) -> list[Any]:
    """Put a guard last into a stack that has our middleware and no guard."""
    summarization = _first(stack, SummarizationMiddleware)
    if summarization is None or _first(stack, ContextGuard):
        return list(stack)
    return [*stack, ContextGuard(summarization)]


def _spec_with_guard(spec: Any, template: DeepAgentsSummarization | None) -> Any:
    """Put a guard last into a declared subagent; a compiled one does not change."""
    if "runnable" in spec:
        return spec
    # A fork inherits the middleware of the main agent, and with it the limits of its model.
    stack = list(spec.get("middleware", ()))
    if template is not None:
        stack = [template.for_model(spec["model"]) if part is template else part for part in stack]
    last = UnsupportedContentMiddleware
    if last is not None and not _first(stack, last):
        # Deep Agents would put it last when it compiles the subagent: after the guard.
        stack.append(last())
    return {**spec, "middleware": _with_guard(stack)}
