"""The commands of the metadata shell."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.metadata_shell.commands import Shell, ShellExit, in_columns
from tests.unit.cli.kafka.metadata_shell.records import run


def test_missing_nodes_and_invalid_commands_are_reported(shell: Shell) -> None:
    assert run(shell, "cat /nope") == ["cat: /nope: No such file or directory."]
    assert run(shell, "cat /image") == ["cat: /image: Is a directory"]
    assert run(shell, "cat /image/provenance/x") == ["cat: /image/provenance/x: No such file or directory."]
    assert run(shell, "tree nope") == ["tree: nope: No such file or directory."]
    assert run(shell, "ls nope") == ["ls: nope: no such file or directory."]
    assert run(shell, "find nope") == ["find: nope: no such file or directory."]
    assert run(shell, "cd nope") == ["cd: nope: no such directory."]
    assert run(shell, "cd /image/provenance") == ["cd: /image/provenance: not a directory."]
    assert run(shell, "nope")[0].startswith("invalid choice: 'nope' (choose from 'cat', 'cd', ")
    assert run(shell, "cat") == ["too few arguments"]
    assert run(shell, "pwd x y") == ["unrecognized arguments: 'x y'"]
    assert run(shell, "") == []


def test_cd_ls_and_find(shell: Shell) -> None:
    assert run(shell, "cd image/topics") == []
    assert run(shell, "pwd") == ["/image/topics"]
    assert run(shell, "find byName/other") == [
        "byName/other",
        "byName/other/0",
        "byName/other/id",
        "byName/other/name",
    ]
    assert run(shell, "ls ../cluster .") == [
        "cluster:",
        "brokers",
        "controllers",
        "\ntopics:",
        "byId",
        "byName",
    ]
    assert run(shell, "ls ../provenance ..")[:3] == ["provenance", "\nimage:", "acls"]
    run(shell, "cd ../../../..")
    assert run(shell, "pwd") == ["/"]
    assert run(shell, "find /local") == ["/local", "/local/commitId", "/local/version"]
    assert run(shell, "find")[:3] == [".", "./image", "./image/acls"]


def test_history_manual_and_exit(shell: Shell) -> None:
    shell.history += ["ls", "pwd", "history"]
    assert run(shell, "history") == ["    1  ls", "    2  pwd", "    3  history"]
    assert run(shell, "history 1") == ["    3  history"]
    assert run(shell, "history x") == ["argument numEntriesToShow: could not convert 'x' to Integer"]
    assert run(shell, "man ls")[0] == "ls: List metadata nodes.\n"
    assert run(shell, "man nope") == ["man: unknown command nope. Type help to get a list of commands."]
    assert any(line.startswith("  tree ") for line in run(shell, "help"))
    with pytest.raises(ShellExit):
        run(shell, "exit")


def test_entries_fill_columns_from_top_to_bottom() -> None:
    entries = ["a", "bb", "ccc", "d", "e"]
    assert list(in_columns(entries, None)) == entries
    assert list(in_columns(entries, 3)) == entries
    assert list(in_columns(entries, 20)) == ["a  bb  ccc  d  e"]
    assert list(in_columns(entries, 12)) == ["a   ccc  e", "bb  d    "]
    assert list(in_columns([], 20)) == []
