// The subset of AscendC that the kernels may use, on the host (docs/ascend-subset.md). Written from the official documentation; it stands in for
// the toolkit's `kernel_operator.h` where kernels are compiled for tests.
#ifndef ENEC_MODEL_ASCENDC_H
#define ENEC_MODEL_ASCENDC_H

#include "copy.h"
#include "vector.h"

#define __aicore__
#define __gm__
#define __global__
using GM_ADDR = uint8_t*;
#define KERNEL_TYPE_AIV_ONLY
#define KERNEL_TASK_TYPE_DEFAULT(kind)

#endif
