"""Matrix products, convolution and pooling."""
