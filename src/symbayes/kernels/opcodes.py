"""The numbers by which compiled code knows the operators; `formula/operators.py` names them."""

FEATURE = 0

LT = 1
NEG = 2
INV = 3
EXP = 4
LOG = 5
SQRT = 6
ABS = 7
SQUARE = 8
CUBE = 9
SIN = 10
COS = 11
TAN = 12
TANH = 13
ARCSIN = 14
ARCCOS = 15
ARCTAN = 16

# From here on two operands, so that the arity of an opcode is two comparisons.
FIRST_BINARY = ARCTAN + 1
ADD = FIRST_BINARY
SUB = ADD + 1
MUL = SUB + 1
DIV = MUL + 1

N_OPCODES = DIV + 1
