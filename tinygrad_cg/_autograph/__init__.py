"""Python's control flow in a `function`: branches and loops that tensors decide.

1. Before `function` traces a Python function, it asks `has_branches` (`detection.py`), which reads
   compiled code and calls nothing. Without branches, nothing below happens. If a function that
   was not seen to be called asks for a value all the same, the trace is made again with the
   function transformed.
2. `source.py` finds the syntax tree of a function: by its first line, and for lambdas by the
   columns of the compiled instructions. `names.py` tells which names a statement assigns, and
   which are live after it.
3. `transform.py` writes each branch and loop as it was, with a question before it: ``if traced(t
   := x > 0)``. The answer is no for what Python decides, and the user's own statement runs. Lines
   and columns are the user's. Calls go through `call`, so that functions are transformed when
   they are called.
4. If the answer is yes, a *site* runs (`dispatch.py`, `runs.py`). Its *regions*, such as both
   cases of the `if`, are compiled then, each as a function of the names that it mentions. Where a
   case returns, breaks or continues, the rest of its block is part of both cases; where that goes
   on through a loop or a `with`, a `Flow` says so, and what follows is guarded by it.
5. Each region runs once as a trial, which leaves nothing in the graph (`FunctionTrace.trial`).
   What it has changed outside of its names is put back (`state.py`), also what functions have
   changed that it calls: they say so when they are entered. From both results follows a
   type that tensors can carry (`merging.py`), and `cond` or `while_loop` runs the regions again,
   as functions of tensors.
6. A `for` through the rows of a tensor, or a long range whose rounds are sure to do the same
   (`repeatable.py`), tries to become a loop; if that fails, Python's own runs.
"""
