"""TensorFlow's spelling of the work, for the two libraries that have it."""

from typing import Any

from benchmarks.library import Library


class Tapes(Library):
    """Gradients by tapes, one for each call; `tf` is the library."""

    def __init__(self, tf: Any):
        self.tf = tf
        self.exp, self.sin, self.cos, self.tanh = tf.exp, tf.sin, tf.cos, tf.tanh
        self.log, self.sum, self.mean = tf.math.log, tf.reduce_sum, tf.reduce_mean
        self.relu, self.softplus, self.matvec = tf.nn.relu, tf.nn.softplus, tf.linalg.matvec
        self.softmax, self.where, self.take = tf.nn.softmax, tf.where, tf.gather

        @tf.custom_gradient
        def log1pexp(x):
            e = tf.exp(x)

            def grad(dy):
                return dy * (1 - 1 / (1 + e))

            return tf.math.log(1 + e), grad

        @tf.custom_gradient
        def decorated(x):
            @tf.custom_gradient
            def grad_fn(dy):
                def grad_grad_fn(ddy):
                    return 3 * x**2 * ddy

                return 3 * x**2 * dy, grad_grad_fn

            return x**3, grad_fn

        @tf.custom_gradient
        def wrapped(x):
            def grad_fn(dy):
                @tf.custom_gradient
                def slope(x):
                    def curvature(ddy):
                        return 6 * x * ddy

                    return 3 * x**2, curvature

                return dy * slope(x)

            return x**3, grad_fn

        self.custom, self.decorated, self.wrapped = log1pexp, decorated, wrapped
        super().__init__()

    def array(self, values, wanted):
        return self.tf.constant(values)

    def value_and_grads(self, function, count=1):
        GradientTape = self.tf.GradientTape

        def of_one(*arguments):
            with GradientTape() as tape:
                tape.watch(arguments[0])
                y = function(*arguments)
            return y, tape.gradient(y, arguments[0])

        def of_more(*arguments):
            sources = arguments[:count]
            with GradientTape() as tape:
                tape.watch(sources)
                y = function(*arguments)
            return y, *tape.gradient(y, sources)

        return of_one if count == 1 else of_more
