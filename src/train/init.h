/* init.h: the first values of a network's parameters, by name and shape. Random numbers are counter-based: a parameter's
 * values depend on the seed, its place in the list and its shape alone. */
#ifndef TESS_TRAIN_INIT_H
#define TESS_TRAIN_INIT_H

#include "net/parameters.h"
#include "train/config.h"

/* Fills both blocks: `trained` and `running` have the sizes of `parameters`. Kernels are drawn by `kind`. Weights of norms are
 * 1 and their biases 0; running means are 0, variances 1. Biases of convolutions are 0, except PyTorch's, which are
 * drawn.
 *
 * KAIMING: normal, variance 2 / inputs. XAVIER: uniform in +-sqrt(6 / (inputs + outputs)). ORTHOGONAL: rows (or columns)
 * of the kernel as a matrix of [first size][the others] are orthonormal. PYTORCH: uniform in +-1 / sqrt(inputs), biases
 * too: its default for convolutions. DRUNET: keeps the signal's size without norms, residual branches start small:
 * the start of bench/peers/train_drunet_small.py. DIFFUSION: normal, variance 1 / inputs, residual branches small, the last
 * layer 0.
 *
 * Inputs are those of one output value, as PyTorch counts them: the second size times the taps; it does so for
 * transposed kernels too. */
tess_status tess_train_init_values(const tess_parameters *parameters, tess_train_init kind, uint64_t seed,
                                   float *trained, float *running, tess_error *error) TESS_MUST_CHECK;

#endif
