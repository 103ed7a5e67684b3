#pragma once

#include <hdf5.h>

#include <utility>

namespace orthant::data::formats {

/// Something that HDF5 opened, closed with its owner.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  ~Hdf5Handle() { close(); }

  [[nodiscard]] hid_t get() const { return id_; }
  /// What is closed already stays so.
  herr_t close() { return id_ < 0 ? 0 : close_(std::exchange(id_, -1)); }

 private:
  hid_t id_;
  Close close_;
};

/// To be called before any other call of HDF5. It prints nothing itself: errors are ours to report. And it does
/// nothing when the process ends, because a file that cannot be written to its end crashes it there.
inline void prepare_hdf5() {
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

}  // namespace orthant::data::formats
