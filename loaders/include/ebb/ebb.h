// SPDX-License-Identifier: Apache-2.0
// The usual headers of ebb in one.
#pragma once

#include <ebb/alloc/data_ptr.h>
#include <ebb/alloc/error.h>
#include <ebb/alloc/version.h>
#include <ebb/gc/error.h>
#include <ebb/gc/job.h>
#include <ebb/loaders/batch.h>
#include <ebb/loaders/dataset.h>
#include <ebb/loaders/error.h>
#include <ebb/loaders/idx.h>
#include <ebb/loaders/loader.h>
#include <ebb/runtime/batch_fit.h>
#include <ebb/runtime/device_stream.h>
#include <ebb/runtime/executor.h>
#include <ebb/runtime/graph.h>
#include <ebb/runtime/loop.h>
#include <ebb/runtime/parallel.h>
#include <ebb/runtime/progress.h>
#include <ebb/runtime/random.h>
#include <ebb/runtime/runtime.h>
#include <ebb/runtime/tensor.h>
#include <ebb/runtime/tensor_from.h>
