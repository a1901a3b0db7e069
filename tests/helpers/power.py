"""Cut the power before every change of a file: what may a disk then hold?

A file system promises only what was synced: a file's bytes since it was synced itself,
a name since its folder was. `cuts` records writes, renames and syncs of a work in a
child process, and replays them for three disks: `synced` keeps what was synced and
nothing else, `names` keeps all names but no byte that was not synced (ext4 with
noauto_da_alloc), `torn` keeps all names and half of those bytes."""

import os
import shutil
import sys
from contextlib import chdir
from pathlib import Path

from .crash import changes_a_file
from .evaluations import in_child

DISKS = ("synced", "names", "torn")


class Disk:
    "What is certainly on disk, by inode: bytes of files, names in folders"

    def __init__(self, root):
        self.root, self.data, self.names, self.held = Path(root), {}, {}, {}
        self.busy = False
        for path in [self.root, *self.root.rglob("*")]:
            self.synced(path)

    def number(self, path):
        "The inode; it is kept open, so that no other file gets the number"
        found = os.stat(path).st_ino
        if found not in self.held:
            self.held[found] = os.open(path, os.O_RDONLY)
        return found

    def synced(self, path):
        "This file, or the names in this folder, are on disk"
        if Path(path).is_dir():
            inside = {
                p.name: (self.number(p), p.is_dir()) for p in Path(path).iterdir()
            }
            self.names[self.number(path)] = inside
        else:
            self.data[self.number(path)] = Path(path).read_bytes()

    def certain(self, folder, place):
        "Write what is certain of a folder"
        place.mkdir()
        for name, (number, is_folder) in self.names.get(folder, {}).items():
            if is_folder:
                self.certain(number, place / name)
            else:
                (place / name).write_bytes(self.data.get(number, b""))

    def cut(self, place):
        "Write the disks that a cut at this moment can leave"
        place.mkdir()
        self.certain(self.number(self.root), place / "synced")
        for kind in DISKS[1:]:
            shutil.copytree(self.root, place / kind)
            for path in self.root.rglob("*"):
                number = self.number(path)
                if path.is_dir():
                    continue
                text = path.read_bytes()
                if self.data.get(number) != text:
                    left = text[: len(text) // 2] if kind == "torn" else b""
                    (place / kind / path.relative_to(self.root)).write_bytes(
                        self.data.get(number, left)
                    )


def cuts(work, folder, place):
    "Folders with the disks of each cut, in order; the last is after the work"
    place.mkdir()

    def recorded():
        disk, real, count = Disk(folder), os.fsync, [0]

        def cut():
            disk.busy, count[0] = True, count[0] + 1
            disk.cut(place / f"{count[0]:04d}")
            disk.busy = False

        def fsync(handle):
            real(handle)
            disk.busy = True
            disk.synced(os.readlink(f"/proc/self/fd/{handle}"))
            disk.busy = False

        def hook(event, args):
            if not disk.busy and changes_a_file(event, args, str(disk.root)):
                cut()

        os.fsync = fsync
        sys.addaudithook(hook)
        with chdir(folder):
            work()
        cut()

    _, status = os.waitpid(in_child(recorded), 0)
    assert status == 0
    return sorted(place.iterdir())
