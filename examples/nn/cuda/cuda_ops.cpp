// SPDX-License-Identifier: Apache-2.0
// The operations of a CUDA device: cuBLAS's products and our own kernels. Made by the module's
// entry. One thread at a time, as DeviceOps says.
#include "entry.h"
#include "kernels.h"

#include <memory>

#include <cublas_v2.h>

namespace ebb::inline v0::nn {

namespace {

OpStatus status_of(cudaError_t result, const char* call) {
  return {call, static_cast<int>(result), cudaGetErrorString(result)};
}
OpStatus status_of(cublasStatus_t result, const char* call) {
  return {call, static_cast<int>(result), cublasGetStatusString(result)};
}

// Kernels and cuBLAS work on the thread's device, which is the host's affair otherwise.
class OnDevice {
 public:
  explicit OnDevice(int index) noexcept {
    if (cudaGetDevice(&before_) == cudaSuccess && before_ != index) {
      has_changed_ = cudaSetDevice(index) == cudaSuccess;
    }
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  OnDevice(OnDevice&&) = delete;
  OnDevice& operator=(OnDevice&&) = delete;
  ~OnDevice() {
    if (has_changed_) {
      static_cast<void>(cudaSetDevice(before_));
    }
  }

 private:
  int before_ = 0;
  bool has_changed_ = false;
};

class CudaOps final : public DeviceOps {
 public:
  explicit CudaOps(int index) noexcept : index_(index) {}
  CudaOps(const CudaOps&) = delete;
  CudaOps& operator=(const CudaOps&) = delete;
  CudaOps(CudaOps&&) = delete;
  CudaOps& operator=(CudaOps&&) = delete;
  ~CudaOps() override;

  OpStatus open() noexcept;

  // What NVIDIA recommends for Hopper; older devices ask for less.
  std::size_t workspace_bytes() const noexcept override { return std::size_t{32} << 20; }

  OpStatus multiply(const OpQueue& queue, MatrixView<const float> a, MatrixView<const float> b,
                    float beta, MatrixView<float> c) noexcept override;
  OpStatus finish_linear(const OpQueue& queue, MatrixView<const float> bias, Activation activation,
                         MatrixView<float> y) noexcept override;
  OpStatus linear_grad(const OpQueue& queue, MatrixView<const float> y, Activation activation,
                       MatrixView<float> grad, MatrixView<float> bias_grad) noexcept override;
  OpStatus log_softmax(const OpQueue& queue, MatrixView<const float> x,
                       MatrixView<float> y) noexcept override;
  OpStatus nll(const OpQueue& queue, const Scored& log_probs, float* loss) noexcept override;
  OpStatus nll_grad(const OpQueue& queue, const Scored& log_probs,
                    MatrixView<float> grad) noexcept override;
  OpStatus count_correct(const OpQueue& queue, const Scored& scores,
                         std::int64_t* count) noexcept override;
  OpStatus sgd(const OpQueue& queue, const SgdStep& step) noexcept override;

 private:
  OpStatus use(const OpQueue& queue) noexcept;

  const int index_;
  cublasHandle_t blas_ = nullptr;
  OpQueue used_;  // what blas_ works on
};

cudaStream_t stream_of(const OpQueue& queue) {
  return static_cast<cudaStream_t>(queue.stream);
}

CudaOps::~CudaOps() {
  if (blas_ != nullptr) {
    const OnDevice on(index_);
    static_cast<void>(cublasDestroy(blas_));
  }
}

OpStatus CudaOps::open() noexcept {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || index_ >= count) {
    return status_of(found != cudaSuccess ? found : cudaErrorInvalidDevice, "cudaGetDeviceCount");
  }
  const OnDevice on(index_);
  return status_of(cublasCreate(&blas_), "cublasCreate");
}

// A new stream makes cuBLAS forget the workspace, and without one it would allocate its own.
OpStatus CudaOps::use(const OpQueue& queue) noexcept {
  if (queue.stream == used_.stream && queue.workspace == used_.workspace) {
    return {};
  }
  OpStatus status = status_of(cublasSetStream(blas_, stream_of(queue)), "cublasSetStream");
  if (status.code == 0) {
    status = status_of(cublasSetWorkspace(blas_, queue.workspace, queue.workspace_bytes),
                       "cublasSetWorkspace");
  }
  used_ = status.code == 0 ? queue : OpQueue{};
  return status;
}

// cuBLAS has matrices by columns: ours by rows are their transposes, so that it computes
// c^T = b^T a^T.
OpStatus CudaOps::multiply(const OpQueue& queue, MatrixView<const float> a,
                           MatrixView<const float> b, float beta, MatrixView<float> c) noexcept {
  const OnDevice on(index_);
  const OpStatus status = use(queue);
  if (status.code != 0) {
    return status;
  }
  const auto operation = [](const auto& m) { return m.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  constexpr float one = 1.0f;
  return status_of(
      cublasSgemm_64(blas_, operation(b), operation(a), c.columns, c.rows, a.columns, &one, b.data,
                     b.leading(), a.data, a.leading(), &beta, c.data, c.leading()),
      "cublasSgemm_64");
}

OpStatus CudaOps::finish_linear(const OpQueue& queue, MatrixView<const float> bias,
                                Activation activation, MatrixView<float> y) noexcept {
  const OnDevice on(index_);
  return status_of(queue_finish_linear(stream_of(queue), bias, activation, y), "finish_linear");
}

OpStatus CudaOps::linear_grad(const OpQueue& queue, MatrixView<const float> y,
                              Activation activation, MatrixView<float> grad,
                              MatrixView<float> bias_grad) noexcept {
  const OnDevice on(index_);
  return status_of(queue_linear_grad(stream_of(queue), y, activation, grad, bias_grad),
                   "linear_grad");
}

OpStatus CudaOps::log_softmax(const OpQueue& queue, MatrixView<const float> x,
                              MatrixView<float> y) noexcept {
  const OnDevice on(index_);
  return status_of(queue_log_softmax(stream_of(queue), x, y), "log_softmax");
}

OpStatus CudaOps::nll(const OpQueue& queue, const Scored& log_probs, float* loss) noexcept {
  const OnDevice on(index_);
  return status_of(queue_nll(stream_of(queue), log_probs, loss), "nll");
}

OpStatus CudaOps::nll_grad(const OpQueue& queue, const Scored& log_probs,
                           MatrixView<float> grad) noexcept {
  const OnDevice on(index_);
  return status_of(queue_nll_grad(stream_of(queue), log_probs, grad), "nll_grad");
}

OpStatus CudaOps::count_correct(const OpQueue& queue, const Scored& scores,
                                std::int64_t* count) noexcept {
  const OnDevice on(index_);
  return status_of(queue_count_correct(stream_of(queue), scores, count), "count_correct");
}

OpStatus CudaOps::sgd(const OpQueue& queue, const SgdStep& step) noexcept {
  const OnDevice on(index_);
  return status_of(queue_sgd(stream_of(queue), step), "sgd");
}

}  // namespace

}  // namespace ebb::inline v0::nn

ebb::nn::DeviceOps* ebb_nn_cuda_ops(int device_index, ebb::nn::OpStatus* status) {
  auto ops = std::make_unique<ebb::nn::CudaOps>(device_index);
  *status = ops->open();
  return status->code == 0 ? ops.release() : nullptr;
}
