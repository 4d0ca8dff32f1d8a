"""Pack plain JSON data: deflate, primed with the usual beginning of a value."""

from __future__ import annotations

import json
import zlib
from typing import Any

LEVEL = 6  # zlib's own default; 9 takes twice as long for a hundredth less

PRIMER = (
    b'{"record":{"v":1,"id":"","parent":null,"covers":[],"clips":[{"key":"","shown":"","limit":'
    b'"summary":"","ledger":{"facts":[{"kind":"","text":"","quote":"","source":"'
    b'"cause":"reached its trigger: ","tokens_before":,"tokens_after":,"messages_after":,'
    b'"archived":true,"by":"embedded","cost":{"calls":0,"input_tokens":0,"output_tokens":0}}}'
    b'{"draft":{"v":1,"text":"","by":"embedded","read":[],"cost":{"calls":0,"input_tokens":0,'
    b'"output_tokens":0},"tokens":0,"embedded":[]}}{"delta":[],"base":"","sum":""}'
    b'{"tenant":"local","thread":"","expires":{"~conspectus":"text","value":"'
    b'{"~conspectus":"placeholder","value":"an object of  that has no JSON form"}'
    b'{"form":"dict","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_",'
    b'"type":"function","function":{"name":"","arguments":"{\\"path\\": \\"\\"}"}}]},"id":null,'
    b'{"form":"dict","message":{"role":"tool","tool_call_id":"call_","content":"[{"type":"text",'
    b'"text":"","type":"tool_result","tool_use_id":"toolu_","type":"tool_use","input":{}'
    b'{"form":"langchain","message":{"type":"ai","data":{"content":"","additional_kwargs":{},'
    b'"response_metadata":{},"type":"ai","name":null,"tool_calls":[{"name":"","args":{"path":""},'
    b'"id":"call_","type":"tool_call"}],"invalid_tool_calls":[],"usage_metadata":{"input_tokens":,'
    b'"output_tokens":,"total_tokens":}}},{"form":"langchain","message":{"type":"tool","data":{'
    b'"content":"","additional_kwargs":{},"response_metadata":{},"type":"tool","name":null,'
    b'"tool_call_id":"call_","artifact":null,"status":"success"}},"id":"","derived":"","cite":"",'
    b'"role":"tool","name":null,{"form":"langchain","message":{"type":"human","data":{"content":"",'
    b'"additional_kwargs":{},"response_metadata":{},"type":"human","name":null}},'
    b'{"form":"dict","message":{"role":"assistant","content":""},"id":null,"derived":"","cite":"",'
    b'"role":"assistant","name":null,"date":null,"at":"2026-01-01T00:00:00+00:00","lossless":true}'
    b'{"form":"dict","message":{"role":"user","content":""},"id":null,"derived":"","cite":"",'
    b'"role":"user","name":null,"date":null,"at":"2026-01-01T00:00:00+00:00","lossless":true}'
)
"""Text that is likely in a value, the likeliest last. It belongs to the format: stored values
cannot be read with another primer."""


def packed(data: Any) -> bytes:
    """Return plain JSON data as bytes."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    deflate = zlib.compressobj(LEVEL, zdict=PRIMER)
    # A lone surrogate has no UTF-8, but Python's own form of one is read back.
    return deflate.compress(text.encode("utf-8", "surrogatepass")) + deflate.flush()


def unpacked(raw: bytes) -> Any:
    """Undo `packed`; bytes of another form, or cut off, are a `ValueError`."""
    inflate = zlib.decompressobj(zdict=PRIMER)
    try:
        text = inflate.decompress(raw) + inflate.flush()
    except zlib.error as error:
        raise ValueError(f"it cannot be unpacked: {error}") from error
    if not inflate.eof or inflate.unused_data:
        raise ValueError("it is cut off")
    return json.loads(text.decode("utf-8", "surrogatepass"))
