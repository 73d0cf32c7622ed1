"""What the paper reports, as printed: arXiv:1910.08892, tables 1 to 5.

Nothing is rounded or mended here. Means and standard deviations are over 50 replications.
"""

from __future__ import annotations

#: Data sets of the simulated tasks, in the order of the paper's table.
DATASETS = ("train", "test_3", "test_6", "test_3_6")
REPLICATIONS = 50
BSR, GP = "published BSR", "published GP"

#: Mean and standard deviation.
Figure = tuple[float, float]

#: "RMSEs of Both Methods", by method and task, in the order of `DATASETS`.
RMSE: dict[str, dict[str, tuple[Figure, Figure, Figure, Figure]]] = {
    BSR: {
        "f1": ((2.00, 3.87), (2.04, 3.27), (92.09, 258.54), (118.53, 311.57)),
        "f2": ((7.30, 10.19), (6.84, 10.10), (95.33, 145.31), (128.27, 221.73)),
        "f3": ((0.19, 0.16), (0.21, 0.20), (9.38, 9.08), (15.19, 32.24)),
        "f4": ((0.14, 0.56), (0.16, 0.62), (6.96, 19.44), (12.06, 38.27)),
        "f5": ((0.68, 1.14), (0.66, 1.13), (1.09, 2.39), (1.41, 3.57)),
        "f6": ((3.99, 0.71), (4.63, 0.62), (12.22, 8.46), (14.44, 10.39)),
    },
    GP: {
        "f1": ((2.71, 2.43), (4.25, 4.59), (116.29, 97.59), (203.31, 168.34)),
        "f2": ((3.56, 5.79), (2.92, 4.41), (121.41, 126.19), (174.01, 173.71)),
        "f3": ((0.63, 0.33), (0.60, 0.35), (28.97, 20.68), (34.08, 25.41)),
        "f4": ((0.72, 1.01), (0.84, 1.12), (24.62, 29.66), (31.74, 36.77)),
        "f5": ((0.78, 0.96), (0.72, 0.83), (1.58, 1.55), (4.49, 5.07)),
        "f6": ((3.17, 0.79), (3.70, 0.93), (5.13, 1.91), (11.09, 12.58)),
    },
}

#: "Complexity of Expressions": number of nodes.
NODES: dict[str, dict[str, Figure]] = {
    BSR: {
        "f1": (22.16, 7.44), "f2": (12.25, 11.41), "f3": (27.23, 10.61),
        "f4": (13.64, 12.50), "f5": (31.28, 9.13), "f6": (20.08, 4.78),
    },
    GP: {
        "f1": (40.85, 21.34), "f2": (54.51, 38.89), "f3": (22.88, 8.62),
        "f4": (22.80, 8.82), "f5": (19.80, 10.28), "f6": (21.18, 25.73),
    },
}  # fmt: skip

#: "RMSEs for different K", on test[-3,3].
TERMS: dict[int, dict[str, Figure]] = {
    2: {
        "f1": (2.04, 3.27), "f2": (6.84, 10.10), "f3": (0.21, 0.20),
        "f4": (0.16, 0.62), "f5": (0.66, 1.13), "f6": (4.63, 0.62),
    },
    4: {
        "f1": (2.86, 5.04), "f2": (0.02, 0.03), "f3": (0.06, 0.03),
        "f4": (0.03, 0.06), "f5": (0.29, 0.80), "f6": (4.00, 0.34),
    },
    8: {
        "f1": (0.64, 2.46), "f2": (0.03, 0.1), "f3": (0.03, 0.02),
        "f4": (0.01, 0.01), "f5": (0.42, 0.94), "f6": (5.28, 4.38),
    },
}  # fmt: skip

#: "Typical Expressions", in our notation. One of GP's is printed with unequal brackets; it is kept
#: as it is.
EXPRESSIONS: dict[str, dict[str, str]] = {
    BSR: {
        "f1": "-0.02 - 1.30*(x0**3 + 1.30*x1 + 0.09) + 0.49*(5.05*x0**4 + x1**2 + 0.31)",
        "f2": "-0.02 - 1.38*(-7.56*x0**2 + 2.85) + 8.00*(-0.30*x0**2 + x1**3 - 1.38)",
        "f3": "0.04 - 0.30*(-0.67*x0**3 + 4.27) - 0.21*(-2.45*x1**3 + 2.45*x0 + x1 - 0.93)",
        "f4": "-0.01 + 0.28*(17.74*cos(x1) + 0.45) + 0.24*(6.26*exp(x0) - 0.47)",
        "f5": "-7.06e-9 + 6.00*sin(x0)*cos(x1)"
        " + 2.66e-9*sin(0.34/sin(x1)**2 - 0.93*exp(x0 + x1) - 0.95)",
        "f6": "-0.19 - 0.85*(1.69*x0*x1 + 1.19)"
        " + 7.00e-3*exp(sin(exp(exp(exp(x1) + (1.37*x1 - 1.01)**3)**3)))",
    },
    GP: {
        "f1": "((exp((-x0/0.80 + 0.81)) - (((sin((0.80*x0)**2) - cos(x1)**6)"
        " + sin((0.80*x0)**2)) + cos(x1))) - (((x0/(-0.80)) + ((((x0/(-0.80)) + cos(x1))"
        " + ((sin((0.71*x0)**2) - ((sin(((0.71*x0))**2) - 0.77))**2) + 1.0)) + x1))"
        " + (0.76 + x1))) + (((x0**2/0.78))**2 + x0**2/0.80)",
        "f2": "(exp(1.82)*x1**3) + 5.26*(x0**2 - (cos((0.90*x0))*(exp(0.187)"
        " + cos((x0**2*cos(0.75)))))) + (x1 - 0.77)**3 + exp(x1 - 0.38)*(x1 - 0.38)",
        "f3": "(4*x1 - sin(1.32*x1) - 0.69 - (sin(sin(1.32*x1)/0.50)/0.76))"
        " - sin(x0) - sin(sin(sin((cos(x1) + x1))))",
        "f4": "(((((exp(cos(x0)) + 0.59 + x0) + exp(x0)) - cos(exp(cos(x1))))"
        " - cos(exp(cos(sin(x1)*x0)))) - x1**2 + x0**2)",
        "f5": "0.77*exp(exp(sin(sin(cos(0.73*x0)))))*x0*cos(x1)",
        "f6": "((((((x1*sin(x0) + x1*x0 - sin(-x0/0.36) - sin((x0 + x1)))"
        " - sin((x0*x1)**2)) + sin(x1/0.36)) - sin((x1*sin(x0))**2)) - sin(-x0/0.36))"
        " - sin(x1*sin(x0) + x1*x0)) - sin(x1*sin(x0) + x1*x0)",
    },
}

#: "Accuracy and Expressions in Real Data Analysis": train, test, expression. Six of the 15 signals
#: that it found in 200 runs are printed.
SIGNALS: tuple[tuple[float, float, str], ...] = (
    (0.539, 0.518, "2.9e-4 - 1.2e-3/open**2 + 1.9e-3/low**2"),
    (0.530, 0.525, "-4.0e-2 - 1.1e-2/(-2.9*exp(low) + 0.84 + open) - 4.0e-2*high/close"),
    (0.531, 0.501, "1.3e-3 - 6.4e-5*exp(close) + 4.2e-8*exp(high)**2"),
    (0.539, 0.518, "4.2e-4 + 4.1e-3/exp(high**2) - 6.1e-5*exp(1/(open**2*high))"),
    (0.532, 0.511, "1.9e-3 - 5.5e-4*close - 7.2e-7*exp(low)**2"),
    (
        0.532,
        0.518,
        "5.7e-4 + 1.6e-4/(1.1*(open + 2*low) + 0.43) - 1.9e-7*(high**3*exp(low) - high)",
    ),
)
SIGNALS_FOUND, SIGNALS_TRIED = 15, 200
