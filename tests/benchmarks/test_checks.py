"""The sweeps run, and see what is wrong."""

import numpy as np
from benchmarks.checks import fronts, predictions, quantiles
from benchmarks.quality.problems import Problem


def test_quantiles_of_mixtures_are_right(capsys):
    assert quantiles.main(["--mixtures", "40"]) == 0
    assert "0 of 240 quantiles of 40 mixtures are wrong" in capsys.readouterr().out


def test_wrong_quantiles_are_counted(monkeypatch, capsys):
    right = quantiles.mixture_quantile
    monkeypatch.setattr(
        quantiles, "mixture_quantile", lambda p, *mixture: right(0.99 * p, *mixture)
    )
    assert quantiles.main(["--mixtures", "20"]) == 1
    assert " 0 of 120" not in capsys.readouterr().out


def test_how_far_predictions_stray():
    y = np.array([0.0, 2.0, 1.0])
    assert predictions.strayed(np.array([1.0, np.nan]), y) == 0.0
    assert predictions.strayed(np.array([1.0, 8.0]), y) == 3.0
    assert predictions.strayed(np.array([-1e300, 1.0]), y) == 5e299
    assert predictions.strayed(np.array([np.nan]), y) == 0.0
    assert not predictions.is_bad({"ranges": 3.0, "outside": 0})
    for bad in ({"ranges": 3.1}, {"ranges": None}, {"ranges": 0.0, "outside": 1}):
        assert predictions.is_bad({"outside": 0} | bad)


def test_a_sweep_of_predictions_goes_on_with_what_is_left(tmp_path, monkeypatch, capsys):
    (tmp_path / "real").mkdir()
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        table = rng.normal(size=(30, 2))
        rows = [f"{a},{b}" for a, b in table]
        (tmp_path / "real" / f"{name}.csv").write_text("\n".join(["x,target", *rows]))
    fits = []
    monkeypatch.setattr(
        predictions,
        "measured",
        lambda problem, timeout: fits.append(problem.name) or {
            "table": problem.name, "split": problem.seed, "timeout": timeout, "rows": 1,
            "ranges": np.inf if problem.name == "two" else 0.5, "outside": 0,
        },
    )  # fmt: skip
    where = ["--data", str(tmp_path), "--records", str(tmp_path / "r.jsonl"), "--splits", "2"]
    assert predictions.main([*where, "--tables", "one"]) == 0
    assert predictions.main(where) == 1
    assert fits == ["one", "one", "two", "two"]
    assert "2 of 4 fits have bad predictions" in capsys.readouterr().out


def test_one_fit_of_the_sweep(tmp_path):
    (tmp_path / "real").mkdir()
    x = np.linspace(0, 1, 40)
    y = x**2 + np.random.default_rng(0).normal(0, 0.1, 40)
    rows = [f"{a},{b}" for a, b in zip(x, y, strict=True)]
    (tmp_path / "real" / "t.csv").write_text("\n".join(["x,target", *rows]))
    where = ["--data", str(tmp_path), "--records", str(tmp_path / "r.jsonl"), "--splits", "1"]
    assert predictions.main([*where, "--timeout", "1"]) == 0
    assert predictions.main(["--data", str(tmp_path / "nowhere")]) == 2


def test_fronts_are_read_and_compared_at_sizes():
    x = np.linspace(1.0, 2.0, 20)[:, None]
    problem = Problem(
        "real", "one", 0.0, 0, ("a",), ("+",), None, None, x, 2.0 * x[:, 0], x, x[:, 0], x[:, 0]
    )  # fmt: skip
    front = fronts.measured(problem, ["x0*2 + 0.5*2*0", "x0 + 1", "1/(x0 - 1)", "x0 +"])
    # What has no value on a training row, or cannot be read, does not count.
    assert [nodes for nodes, *_ in front] == [3, 3]
    assert min(train for _, train, _ in front) < 1e-12
    assert fronts.at_size(front, 2) == (np.inf, np.inf)
    assert fronts.at_size(front, 3)[0] < 1e-12
    worse = [(nodes, 2.0 * train + 0.1, 2.0 * test) for nodes, train, test in front]
    lines = fronts.summary({"one": {"symbayes": front, "pyoperon": worse}}).splitlines()
    assert len(lines) == 2 * len(fronts.SIZES)
    assert all("at most theirs on 1 of 1" in line for line in lines)
    lines = fronts.summary({"one": {"symbayes": worse, "pyoperon": front}}).splitlines()
    assert all("at most theirs on 0 of 1" in line for line in lines)
