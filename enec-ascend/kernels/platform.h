// The toolkit's header on a machine that has it, the host model elsewhere.
#ifndef ENEC_KERNELS_PLATFORM_H
#define ENEC_KERNELS_PLATFORM_H

#if defined(ENEC_HOST_MODEL)
#include "ascendc.h"
#else
#include "kernel_operator.h"
#endif

#include "abi.h"

namespace enec {

using namespace AscendC;

using Words = LocalTensor<uint16_t>;

// `to` goes on when everything issued before on `from` is over.
template <HardEvent event>
__aicore__ inline void Sync(TPipe& pipe) {
    const auto id = static_cast<TEventID>(pipe.FetchEventID(event));
    SetFlag<event>(id);
    WaitFlag<event>(id);
}

// The comparison with a number changed its name in version 9 of the toolkit.
__aicore__ inline void IsNegative(const LocalTensor<uint8_t>& bits, const LocalTensor<half>& values, uint32_t count) {
#if defined(ENEC_HOST_MODEL) || !defined(ENEC_CANN_8)
    Compares(bits, values, static_cast<half>(0.0F), CMPMODE::LT, count);
#else
    CompareScalar(bits, values, static_cast<half>(0.0F), CMPMODE::LT, count);
#endif
}

}  // namespace enec

#endif
