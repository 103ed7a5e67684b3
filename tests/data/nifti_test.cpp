#include "orthant/data/formats/nifti.hpp"

#include "orthant/base/random.hpp"
#include "orthant/data/io/gzip_file.hpp"
#include "tests/data/temporary.hpp"

#include <cstring>

namespace orthant {
namespace {

using base::Exit;
using data::arrays::NumberType;
using data::formats::Nifti;
using test::expect_error;

/// A NIfTI-1 file byte by byte, in either byte order.
class File {
 public:
  explicit File(bool big_endian) : big_endian_(big_endian), bytes_(352, '\0') {
    put<std::int32_t>(0, 348);
    bytes_.replace(344, 4, std::string("n+1\0", 4));
    put<float>(108, 352);
  }
  template <class T>
  File& put(std::size_t at, T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    if (big_endian_) std::reverse(raw, raw + sizeof(T));
    if (bytes_.size() < at + sizeof(T)) bytes_.resize(at + sizeof(T));
    bytes_.replace(at, sizeof(T), raw, sizeof(T));
    return *this;
  }
  File& extents(const std::vector<std::int16_t>& xyz) {
    put<std::int16_t>(40, static_cast<std::int16_t>(xyz.size()));
    for (std::size_t i = 0; i < xyz.size(); ++i) put<std::int16_t>(42 + 2 * i, xyz[i]);
    return *this;
  }
  File& type(std::int16_t code, std::int16_t bits) { return put(70, code).put(72, bits); }
  template <class T>
  File& numbers(std::initializer_list<T> values) {
    std::size_t at = 352;
    for (const T value : values) {
      put<T>(at, value);
      at += sizeof(T);
    }
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  bool big_endian_;
  std::string bytes_;
};

TEST(NiftiFile, ReadsBothByteOrdersAndScales) {
  const test::TemporaryDirectory folder;
  for (const bool big_endian : {false, true}) {
    File file(big_endian);
    file.extents({3, 2, 1}).type(4, 16).numbers<std::int16_t>({1, 2, 3, -4, 5, 300});
    file.put<float>(112, 2).put<float>(116, 10).put<float>(80, 0.5F).put<float>(84, 0.75F).put<float>(88, 3);
    for (const std::string& path :
         {folder.write("a.nii", file.bytes()), folder.write("a.nii.gz", data::io::gzip(file.bytes()))}) {
      const Nifti image = data::formats::read_nifti(path);

      EXPECT_EQ(image.type, NumberType::i16);
      EXPECT_EQ(image.extents, (std::vector<std::int64_t>{1, 2, 3}));
      EXPECT_EQ(image.spacing, (std::array<float, 3>{3, 0.75F, 0.5F}));
      EXPECT_EQ(data::formats::nifti_values(image, path), (std::vector<float>{12, 14, 16, 2, 20, 610}));
    }
  }
}

TEST(NiftiFile, ReadsEveryType) {
  const test::TemporaryDirectory folder;
  const auto values = [&](const File& file) {
    const std::string path = folder.write("a.nii", file.bytes());
    return data::formats::nifti_values(data::formats::read_nifti(path), path);
  };

  const std::vector<float> expected{1, 2};
  EXPECT_EQ(values(File(false).extents({2, 1, 1}).type(2, 8).numbers<std::uint8_t>({1, 2})), expected);
  EXPECT_EQ(values(File(true).extents({2, 1, 1}).type(8, 32).numbers<std::int32_t>({1, 2})), expected);
  EXPECT_EQ(values(File(true).extents({2, 1, 1}).type(16, 32).numbers<float>({1, 2})), expected);
  EXPECT_EQ(values(File(false).extents({2, 1, 1}).type(64, 64).numbers<double>({1, 2})), expected);
  EXPECT_EQ(values(File(false).extents({2, 1, 1}).type(256, 8).numbers<std::int8_t>({1, 2})), expected);
  EXPECT_EQ(values(File(true).extents({2, 1, 1}).type(512, 16).numbers<std::uint16_t>({1, 2})), expected);
}

TEST(NiftiFile, ChannelsAreTheFourthDim) {
  const test::TemporaryDirectory folder;
  const auto extents = [&](const std::vector<std::int16_t>& xyz) {
    return data::formats::read_nifti(
               folder.write("a.nii", File(false).extents(xyz).type(2, 8).bytes() + std::string(64, 'x')))
        .extents;
  };

  EXPECT_EQ(extents({2, 3, 4, 2}), (std::vector<std::int64_t>{2, 4, 3, 2}));
  EXPECT_EQ(extents({2, 3, 4, 1}), (std::vector<std::int64_t>{4, 3, 2}));
  EXPECT_EQ(extents({2, 3, 4, 1, 1}), (std::vector<std::int64_t>{4, 3, 2}));
  EXPECT_EQ(extents({2, 3}), (std::vector<std::int64_t>{1, 3, 2}));
}

TEST(NiftiFile, ReadsWhatItWrites) {
  const test::TemporaryDirectory folder;
  Nifti image{.type = NumberType::i16, .extents = {2, 2, 3, 4}, .slope = 0.5, .intercept = 7, .spacing = {1, 2, 3}};
  for (std::int16_t i = 0; i < 48; ++i) {
    image.numbers.push_back(static_cast<std::byte>(i));
    image.numbers.push_back(std::byte{1});
  }
  for (const std::string name : {"a.nii", "a.nii.gz"}) {
    data::formats::write_nifti(folder.file(name), image);
    const Nifti back = data::formats::read_nifti(folder.file(name));

    EXPECT_EQ(back.extents, image.extents);
    EXPECT_EQ(back.numbers, image.numbers);
    EXPECT_EQ(back.spacing, image.spacing);
    EXPECT_EQ(back.slope, image.slope);
    EXPECT_EQ(back.intercept, image.intercept);
  }
}

TEST(NiftiFile, RefusesWhatIsNone) {
  const test::TemporaryDirectory folder;
  const auto refuse = [&](const std::string& message, const std::string& bytes) {
    SCOPED_TRACE(message);
    const std::string path = folder.write("a.nii", bytes);
    expect_error(Exit::bad_data, message, [&] { data::formats::nifti_values(data::formats::read_nifti(path), path); });
  };
  const File good = File(false).extents({2, 1, 1}).type(16, 32).numbers<float>({1, 2});

  refuse("only 5 bytes", "short");
  refuse("not a single-file NIfTI-1 image", std::string(1000, 'x'));
  refuse("is truncated", good.bytes().substr(0, 359));
  refuse("is truncated", File(good).extents({32767, 32767, 32767}).bytes());
  refuse("not those of a volume", File(good).extents({2, 0, 1}).bytes());
  refuse("not those of a volume", File(good).extents({2, -5, 1}).bytes());
  refuse("not those of a volume", File(good).extents({2, 1, 1, 2, 2}).bytes());
  refuse("not those of a volume", File(good).put<std::int16_t>(40, 99).bytes());
  refuse("NIfTI type 32", File(good).type(32, 64).bytes());
  refuse("begin at byte", File(good).put<float>(108, 1e30F).bytes());
  refuse("begin at byte", File(good).put<float>(108, -4).bytes());
  refuse("begin at byte nan", File(good).put<float>(108, std::numeric_limits<float>::quiet_NaN()).bytes());
  refuse("its scale is", File(good).put<float>(112, std::numeric_limits<float>::infinity()).bytes());
  refuse("holds nan as number 1", File(good).numbers<float>({1, std::numeric_limits<float>::quiet_NaN()}).bytes());
}

TEST(NiftiFile, DamagedFilesEndInAnErrorOrInNumbers) {
  const test::TemporaryDirectory folder;
  const std::string good = File(false).extents({5, 4, 3}).type(4, 16).bytes() + std::string(120, 'x');
  for (std::uint64_t key = 0; key < 500; ++key) {
    std::string bad = good;
    for (std::uint64_t i = 0; i < 3; ++i) bad[base::keyed(key, i) % 130] = static_cast<char>(base::keyed(key, 10 + i));
    if (key % 5 == 0) bad.resize(base::keyed(key, 20) % bad.size());
    const std::string path = folder.write("a.nii", bad);
    try {
      data::formats::nifti_values(data::formats::read_nifti(path), path);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_data);
    }
  }
}

}  // namespace
}  // namespace orthant
