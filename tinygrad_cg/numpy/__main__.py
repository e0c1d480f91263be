"""`python -m tinygrad_cg.numpy`: which of NumPy's functions work on tensors."""

from tinygrad_cg.numpy.coverage import main

if __name__ == "__main__":
    main()
