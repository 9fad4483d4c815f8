#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Tensors exchanged with NumPy, and with PyTorch where it is: values, strides, lifetime, read-only, both
# ways. Exits with 77 (skipped) where no Python with NumPy is found. Used as: dlpack_test.py BRIDGE_LIBRARY
import ctypes
import gc
import os
import sys

SYSTEM_PYTHON = "/usr/bin/python3"  # where a distribution's python3-numpy is, if another Python comes first
try:
    import numpy
except ImportError:
    if os.path.exists(SYSTEM_PYTHON) and "EBB_DLPACK_RETRY" not in os.environ:
        os.environ["EBB_DLPACK_RETRY"] = "1"
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON] + sys.argv)
    print("skipped: no NumPy here (Debian: python3-numpy)")
    sys.exit(77)
try:
    import torch
except ImportError:
    torch = None

VERSIONED = tuple(int(p) for p in numpy.__version__.split(".")[:2]) >= (2, 1)
DTYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8", "i16": "int16",
          "i32": "int32", "i64": "int64"}

bridge = ctypes.CDLL(sys.argv[1])
POINTERS = ["counting", "transposed", "export", "export_versioned", "import", "import_versioned"]
for name in POINTERS:
    getattr(bridge, "bridge_" + name).restype = ctypes.c_void_p
for name in ["error", "text"]:
    getattr(bridge, "bridge_" + name).restype = ctypes.c_char_p
bridge.bridge_live.restype = ctypes.c_int64

api = ctypes.pythonapi
Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, Destructor]
for name, result in [("PyCapsule_GetPointer", ctypes.c_void_p), ("PyCapsule_IsValid", ctypes.c_int),
                     ("PyCapsule_SetName", ctypes.c_int)]:
    getattr(api, name).restype = result
    getattr(api, name).argtypes = [ctypes.py_object, ctypes.c_char_p]

NAMES = {False: (b"dltensor", b"used_dltensor"), True: (b"dltensor_versioned", b"used_dltensor_versioned")}
is_valid_address = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", api))
pointer_of_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", api))


def destroy_unused(capsule):
    """Capsules whose tensor nobody took call the deleter. Works on the address: the object is dying."""
    for versioned, refuse in [(False, bridge.bridge_refuse), (True, bridge.bridge_refuse_versioned)]:
        if is_valid_address(capsule, NAMES[versioned][0]):
            refuse(ctypes.c_void_p(pointer_of_address(capsule, NAMES[versioned][0])))


destructor = Destructor(destroy_unused)


class Tensor:
    """An ebb tensor, with the protocol that from_dlpack functions expect."""

    def __init__(self, address):
        self.address = ctypes.c_void_p(address)
        assert address, bridge.bridge_error().decode()

    def __del__(self):
        bridge.bridge_drop(self.address)

    @staticmethod
    def counting(dtype, rows, columns):
        return Tensor(bridge.bridge_counting(dtype.encode(), ctypes.c_int64(rows), ctypes.c_int64(columns)))

    @staticmethod
    def taken(producer, **options):
        capsule = producer.__dlpack__(**options)
        versioned = bool(api.PyCapsule_IsValid(capsule, NAMES[True][0]))
        pointer = ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, NAMES[versioned][0]))
        api.PyCapsule_SetName(capsule, NAMES[versioned][1])
        take = bridge.bridge_import_versioned if versioned else bridge.bridge_import
        return Tensor(take(pointer))

    def transposed(self):
        return Tensor(bridge.bridge_transposed(self.address))

    def set(self, row, column, value):
        bridge.bridge_set(self.address, ctypes.c_int64(row), ctypes.c_int64(column), ctypes.c_double(value))

    def __str__(self):
        return bridge.bridge_text(self.address).decode()

    def __dlpack__(self, max_version=None, **_):
        versioned = max_version is not None and max_version[0] >= 1
        export = bridge.bridge_export_versioned if versioned else bridge.bridge_export
        pointer = export(self.address)
        if not pointer:
            raise BufferError(bridge.bridge_error().decode())
        return api.PyCapsule_New(pointer, NAMES[versioned][0], destructor)

    def __dlpack_device__(self):
        return (1, 0)


def check_out(dtype, numpy_dtype):
    tensor = Tensor.counting(dtype, 3, 4)
    array = numpy.from_dlpack(tensor)
    assert array.dtype == numpy_dtype and array.shape == (3, 4), (array.dtype, array.shape)
    assert (array == numpy.arange(12).reshape(3, 4)).all(), array
    tensor.set(1, 2, 100)
    assert array[1, 2] == 100, "the elements are shared"
    turned = numpy.from_dlpack(tensor.transposed())
    assert turned.strides == (array.itemsize, 4 * array.itemsize), turned.strides
    assert turned[2, 1] == 100
    del tensor, turned
    gc.collect()
    assert bridge.bridge_live() == 1 and array[2, 3] == 11, "the array holds the storage"
    del array
    gc.collect()
    assert bridge.bridge_live() == 0, "the array was the last"


def check_in(dtype, numpy_dtype):
    array = numpy.arange(12, dtype=numpy_dtype).reshape(3, 4)
    references = sys.getrefcount(array)
    tensor = Tensor.taken(array)
    assert str(tensor).startswith(dtype + "[3, 4] cpu\n[[0, 1, 2, 3]"), str(tensor)
    array[0, 1] = 100
    assert "[0, 100, 2, 3]" in str(tensor), "the elements are shared"
    for view, first in [(array.T, "[[0, 4, 8]"), (array[::-1, ::-2], "[[11, 9]"), (array[1:, 1::2], "[[5, 7]")]:
        assert first in str(Tensor.taken(view)), (first, str(Tensor.taken(view)))
    gc.collect()
    assert sys.getrefcount(array) > references, "the tensor holds the array"
    del tensor, view
    gc.collect()
    assert sys.getrefcount(array) == references, "each deleter ran"


def check_shapes():
    assert str(Tensor.taken(numpy.array(2.5))) == "f64[] cpu\n2.5"
    assert str(Tensor.taken(numpy.zeros((0, 3), numpy.int8))) == "i8[0, 3] cpu\n[]"
    assert numpy.from_dlpack(Tensor.taken(numpy.ones((1,) * 8))).shape == (1,) * 8
    assert str(Tensor.taken(numpy.full((2, 2), 7, numpy.int32))) == "i32[2, 2] cpu\n[[7, 7],\n [7, 7]]"


def check_errors():
    for bad in [numpy.zeros((1,) * 9), numpy.zeros(2, numpy.complex64), numpy.zeros(2, numpy.uint64)]:
        references = sys.getrefcount(bad)
        try:
            Tensor.taken(bad)
        except AssertionError as e:
            assert str(e).startswith("[from_dlpack] "), e
        else:
            raise AssertionError(f"{bad.dtype}, {bad.ndim} dimensions: taken")
        assert sys.getrefcount(bad) == references, "the deleter ran"
    unused = Tensor.counting("f32", 2, 2)
    capsule = unused.__dlpack__()
    del unused
    assert bridge.bridge_live() == 1
    del capsule
    assert bridge.bridge_live() == 0, "a capsule that nobody took calls the deleter"


def check_read_only():
    tensor = Tensor.counting("i32", 2, 2)
    bridge.bridge_protect(tensor.address)
    if not VERSIONED:  # such a NumPy cannot be told
        try:
            numpy.from_dlpack(tensor)
        except BufferError as e:
            assert "read-only" in str(e), e
        else:
            raise AssertionError("a read-only tensor became a writable array")
        return
    assert not numpy.from_dlpack(tensor).flags.writeable
    array = numpy.arange(3)
    array.flags.writeable = False
    taken = Tensor.taken(array, max_version=(1, 0))
    assert bridge.bridge_read_only(taken.address)


def check_torch():
    for dtype in ["f16", "bf16", "f32", "f64", "i8", "u8", "i16", "i32", "i64"]:
        tensor = Tensor.counting(dtype, 2, 3)
        theirs = torch.from_dlpack(tensor.transposed())
        assert theirs.tolist() == [[0, 3], [1, 4], [2, 5]], theirs
        back = Tensor.taken(theirs.contiguous())
        assert str(back).startswith(dtype + "[3, 2] cpu\n[[0, 3]"), str(back)
        del tensor, theirs, back
    gc.collect()
    assert bridge.bridge_live() == 0


def main():
    bridge.bridge_open()
    for dtype, numpy_dtype in DTYPES.items():
        check_out(dtype, numpy.dtype(numpy_dtype))
        check_in(dtype, numpy.dtype(numpy_dtype))
    check_shapes()
    check_errors()
    check_read_only()
    if torch is not None:
        check_torch()
    gc.collect()
    assert bridge.bridge_live() == 0
    survivor = numpy.from_dlpack(Tensor.counting("f64", 10, 10))
    bridge.bridge_close()
    assert survivor[9, 9] == 99, "an array outlives the runtime"
    print(f"NumPy {numpy.__version__}" + (f", torch {torch.__version__}" if torch else ", no torch here"))


main()
