"""CosmoFlow, 3-D U-Net and ResNet-50 in Keras, channels-last, with the work of networks_torch.py."""

from keras import Model, layers


def _cosmoflow(x, dropout=0.2):
    for i, filters in enumerate((16, 32, 64, 128, 256, 256, 256), start=1):
        x = layers.Conv3D(filters, 3, 2 if i == 4 else 1, "same", use_bias=False)(x)
        x = layers.LeakyReLU(negative_slope=0.01)(x)
        if min(x.shape[1:4]) > 2:
            x = layers.AveragePooling3D(3, 2, "same")(x)
    x = layers.Flatten()(x)
    for features in (2048, 256):
        x = layers.Dense(features)(layers.Dropout(dropout)(x))
        x = layers.LeakyReLU(negative_slope=0.01)(x)
    return layers.Dense(4)(layers.Dropout(dropout)(x))


def _two_convs(x, first, second):
    for filters in (first, second):
        x = layers.Conv3D(filters, 3, 1, "same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x))
    return x


def _unet3d(x, classes=3):
    skips = []
    for first, second in ((32, 64), (64, 128), (128, 256)):
        skips.append(_two_convs(x, first, second))
        x = layers.MaxPooling3D(2)(skips[-1])
    x = _two_convs(x, 256, 512)
    for filters, (first, second) in ((512, (256, 256)), (256, (128, 128)), (128, (64, 64))):
        x = layers.Conv3DTranspose(filters, 2, 2, use_bias=False)(x)
        x = _two_convs(layers.Concatenate()([x, skips.pop()]), first, second)
    return layers.Conv3D(classes, 1, use_bias=False)(x)


def _norm_conv(x, filters, kernel, stride=1, relu=True):
    x = layers.Conv2D(filters, kernel, stride, "same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return layers.ReLU()(x) if relu else x


def _bottleneck(x, middle, stride):
    y = _norm_conv(x, middle, 1)
    y = _norm_conv(y, middle, 3, stride)
    y = _norm_conv(y, 4 * middle, 1, relu=False)
    if stride != 1 or x.shape[-1] != 4 * middle:
        x = _norm_conv(x, 4 * middle, 1, stride, relu=False)
    return layers.ReLU()(layers.Add()([x, y]))


def _resnet50(x, classes=1000):
    x = layers.MaxPooling2D(3, 2, "same")(_norm_conv(x, 64, 7, 2))
    for stage, depth in enumerate((3, 4, 6, 3)):
        for i in range(depth):
            x = _bottleneck(x, 64 << stage, 2 if stage > 0 and i == 0 else 1)
    return layers.Dense(classes)(layers.GlobalAveragePooling2D()(x))


ZOO = {"cosmoflow": _cosmoflow, "unet3d": _unet3d, "resnet50": _resnet50}


def make(name, sample, batch):
    """The network `name` for samples of shape `sample` (C, [D,] H, W), which it takes with C last."""
    src = layers.Input((*sample[1:], sample[0]), batch_size=batch)
    return Model(src, ZOO[name](src))
