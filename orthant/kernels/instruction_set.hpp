#pragma once

namespace orthant::kernels {

/// Keeps all kernels to the instruction set that ORTHANT_MAX_ISA names ("avx3", "avx2", "sse4" or "scalar"), so that a
/// machine does what an older one would. The first call decides; everything that makes kernels begins with one. Throws
/// Error if there is no such set.
void limit_instructions();

}  // namespace orthant::kernels
