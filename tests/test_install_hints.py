"""Every hint to install an extra is one command, right for where Conspectus itself came from."""

import json
from pathlib import Path
from typing import Any

import pytest

from conspectus.errors import install_command

REPOSITORY = "https://example.org/conspectus.git"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'conspectus[serve]'"),
        ({"url": "https://example.org/conspectus.whl"}, "pip install 'conspectus[serve]'"),
        ({"url": "file:///srv/my%20code", "dir_info": {}}, "pip install '/srv/my code[serve]'"),
        (
            {"url": "file:///srv/code", "dir_info": {"editable": True}},
            "pip install -e '/srv/code[serve]'",
        ),
        (
            {"url": REPOSITORY, "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
            f"pip install 'conspectus[serve] @ git+{REPOSITORY}'",
        ),
    ],
)
def test_the_command_installs_from_where_conspectus_came(
    origin: Any, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "conspectus-9.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: conspectus\nVersion: 9.9\n")
    if origin is not None:
        (folder / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("serve") == command
