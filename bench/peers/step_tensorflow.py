"""Training step of a network in TensorFlow: one tf.function with forward, loss, backward, SGD with momentum."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf

import networks_tensorflow
import peer_step


def _target(model, args):
    if args.model == "cosmoflow":
        return tf.random.uniform((args.batch, 4), -1, 1), keras.losses.MeanSquaredError()
    shape = (args.batch, *args.input[1:]) if args.model == "unet3d" else (args.batch,)
    labels = tf.random.uniform(shape, 0, model.output.shape[-1], tf.int32)
    return labels, keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def main():
    args = peer_step.arguments()
    keras.utils.set_random_seed(1)
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(args.threads)
    model = networks_tensorflow.make(args.model, args.input, args.batch)
    src = tf.random.normal(model.input.shape)
    target, loss_function = _target(model, args)
    optimizer = keras.optimizers.SGD(1e-3, momentum=0.9)
    optimizer.build(model.trainable_variables)

    @tf.function
    def update(src, target):
        with tf.GradientTape() as tape:
            loss = loss_function(target, model(src, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    parameters = sum(int(tf.size(variable)) for variable in model.trainable_variables)
    peer_step.report(lambda: float(update(src, target)), args, tf.__version__, parameters)


main()
