"""Nothing that happens to the file of a checkpoint is a surprise."""

import errno
import os
from pathlib import Path

import pytest

from symbayes import ModelFileError, SamplingWarning, run
from symbayes.storage import atomic, checkpoint

from ...fits import NOISY, X, small
from ..fuzzing import fuzz
from ..killing import digest
from .runs import LT, PAPER, TEMPERED, Stop, never_stopped, resume, stopped, stopping

# When a file is there already.


def test_no_other_run_is_lost(path):
    stopped(path, "settling")
    before = path.read_bytes()
    message = r"exists, and may be the checkpoint of another run; resume that run with Bayesian"
    with pytest.raises(FileExistsError, match=message):
        small().fit(X, NOISY, checkpoint=path)
    assert path.read_bytes() == before
    os.replace(path, atomic.previous_of(str(path)))
    with pytest.raises(FileExistsError, match=message):
        small().fit(X, NOISY, checkpoint=path)
    assert Path(atomic.previous_of(str(path))).read_bytes() == before


def test_what_is_no_checkpoint_is_not_to_be_removed(path):
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FileExistsError, match=r"exists, and is no checkpoint; name another file$"):
        small().fit(X, NOISY, checkpoint=path)
    assert path.read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize("wrong", [3, b"x", True])
def test_a_path_that_is_none(wrong):
    with pytest.raises(TypeError, match=r"checkpoint must be a str or a pathlib\.Path, not "):
        small().fit(X, NOISY, checkpoint=wrong)
    with pytest.raises(TypeError, match=r"path must be a str or a pathlib\.Path, not "):
        resume(wrong, X, NOISY)


def test_nothing_is_there(path):
    with pytest.raises(FileNotFoundError):
        resume(path, X, NOISY)


# Where nothing can be written.


@pytest.fixture
def no_work(monkeypatch):
    monkeypatch.setattr(run, "sample", lambda *_, **__: pytest.fail("no work yet"))


def test_no_folder(no_work, tmp_path):
    with pytest.raises(OSError, match=r"no file can be made in this folder .*; create it first"):
        small().fit(X, NOISY, checkpoint=tmp_path / "none" / "run")


def test_a_folder_for_a_file(no_work, tmp_path):
    with pytest.raises(IsADirectoryError, match="this is a folder; add the name of a file"):
        small().fit(X, NOISY, checkpoint=tmp_path)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="this user may write everywhere"
)
def test_a_folder_that_cannot_be_written_to(no_work, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=r"no file can be made in this folder \(Permission denied\)"):
        small().fit(X, NOISY, checkpoint=tmp_path / "run")


def refusing(real, number, after):
    """A function that fails with an error of the system once it was called `after` times."""
    calls = 0

    def call(*arguments, **options):
        nonlocal calls
        calls += 1
        if after < calls:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **options)

    return call


@pytest.mark.parametrize(
    ("where", "number"),
    [("fsync", errno.ENOSPC), ("open", errno.EROFS), ("replace", errno.EACCES)],
)
def test_a_disk_that_fills_up(always, path, monkeypatch, where, number):
    """One warning; the run comes to its end, and the last checkpoint stays."""
    owner = atomic if where == "open" else atomic.os
    real = open if where == "open" else getattr(os, where)
    # At the third checkpoint: the second has two files to rename.
    after = 3 if where == "replace" else 2
    with monkeypatch.context() as patch:
        patch.setattr(owner, where, refusing(real, number, after), raising=False)
        message = rf"run\.checkpoint' could not be written \(.*{os.strerror(number)}.*the run"
        with pytest.warns(SamplingWarning, match=message) as warned:
            whole = small(**TEMPERED).fit(X, NOISY, checkpoint=path)
    assert sum(one.category is SamplingWarning for one in warned) == 1
    names = {path.name, f"{path.name}.previous"}
    assert {one.name for one in path.parent.iterdir()} <= names
    assert digest(resume(path, X, NOISY)) == digest(whole)


def test_a_disk_that_has_room_again(always, path, monkeypatch):
    full = True

    def fsync(file):
        if full and path.exists():
            raise OSError(errno.ENOSPC, "No space left on device")

    def progress(status):
        nonlocal full
        full = status.phase != "drawing"

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    with pytest.warns(SamplingWarning, match="No space left on device"):
        small(**TEMPERED, progress=progress).fit(X, NOISY, checkpoint=path)
    monkeypatch.setattr(run, "sample", lambda *_, **__: pytest.fail("it is finished"))
    resume(path, X, NOISY)


# Files that are damaged.


def test_a_truncated_checkpoint(always, path):
    whole = never_stopped()
    stopped(path, done=60)
    path.write_bytes(path.read_bytes()[:-100])
    message = r"is damaged: .*\. The run resumes from the checkpoint before it, '.*\.previous'"
    with pytest.warns(SamplingWarning, match=message):
        resumed = resume(path, X, NOISY)
    assert digest(resumed) == digest(whole)
    assert digest(resume(path, X, NOISY)) == digest(whole)


def test_a_damaged_one_never_replaces_a_good_one(always, path, monkeypatch):
    stopped(path, done=60)
    previous = Path(atomic.previous_of(str(path)))
    good = previous.read_bytes()
    path.write_bytes(b"")
    real = checkpoint.CheckpointWriter.write

    def write(*arguments):
        real(*arguments)
        raise Stop

    monkeypatch.setattr(checkpoint.CheckpointWriter, "write", write)
    with pytest.warns(SamplingWarning, match="is empty.*resumes from"), pytest.raises(Stop):
        resume(path, X, NOISY)
    assert previous.read_bytes() == good
    assert path.stat().st_size > len(good) / 2


def test_no_checkpoint_but_the_one_before(always, path):
    """A kill between two renamings."""
    whole = never_stopped()
    stopped(path, done=60)
    path.unlink()
    with pytest.warns(SamplingWarning, match=r"checkpoint' does not exist\. The run resumes"):
        assert digest(resume(path, X, NOISY)) == digest(whole)


def test_both_are_damaged(always, path):
    stopped(path, done=60)
    for one in (path, Path(atomic.previous_of(str(path)))):
        one.write_bytes(one.read_bytes()[:500])
    message = r"is damaged.*; the one before it, .*, cannot be read either"
    with pytest.raises(ModelFileError, match=message):
        resume(path, X, NOISY)


def test_a_model_is_no_checkpoint(path):
    small().fit(X, NOISY).save(path)
    with pytest.raises(ModelFileError, match="holds 'model', not 'checkpoint'"):
        resume(path, X, NOISY)


class Begun(Exception):
    """Sampling has begun, from the point that comes with this."""


@pytest.fixture
def load(monkeypatch):
    """Resume, up to where sampling begins."""

    def sample(*_, before, **__):
        raise Begun(before)

    monkeypatch.setattr(run, "sample", sample)

    def load(path):
        try:
            model = resume(path, X, NOISY)
        except Begun as begun:
            return begun.args[0]
        except ModelFileError:
            raise
        except (TypeError, ValueError) as error:  # a forged checksum of the table, or parameter
            raise ModelFileError(f"{str(path)!r} {error}") from error
        return checkpoint.RunState(model.result_.run.trace, finished=True)

    return load


MUTATED = {"search": TEMPERED | LT, "drawing": TEMPERED | LT, "trees": PAPER}


@pytest.mark.parametrize("phase", MUTATED)
def test_mutations(always, path, tmp_path, phase, request):
    """Bit flips and worse: an error that says so, or the very same checkpoint."""
    with pytest.raises(Stop):
        small(**MUTATED[phase], progress=stopping(phase, 100)).fit(X, NOISY, checkpoint=path)
    load = request.getfixturevalue("load")
    expected = stored(load(path))
    ends = fuzz(load, lambda point: stored(point) == expected, path.read_bytes(), 108, 4, tmp_path)
    assert sum(n for (_, end), n in ends.items() if end == "refused") > 54


def stored(point):
    document, arrays = checkpoint.to_parts(point)
    return document, {name: array.tobytes() for name, array in arrays.items()}
