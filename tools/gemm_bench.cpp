#include "tools/gemm_bench.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/base/math.h"
#include "tilewright/runtime/parallel.h"
#include "tilewright/runtime/random.h"
#include "tools/compile.h"
#include "tools/gemm_run.h"

namespace tw::tools {

namespace {

using kernels::GemmShape;

constexpr int64_t fill_elements = int64_t{1} << 27;  // 512 MiB of u32: well over 100 us of writing
constexpr double batch_seconds = 3e-3;
constexpr auto warm_up_time = std::chrono::milliseconds(100);
constexpr int most_launches = 50;
constexpr int64_t sample_work = int64_t{1} << 31;  // multiply-adds of the fp64 sample

// Values of the standard normal distribution in storage format. Their number is a prime, so rows of any
// length start at different places.
class Pool {
 public:
  Pool(DType dtype, uint64_t seed) : codes_(1'048'583) {
    const std::vector<float> values = random_normal(codes_.size(), seed);
    from_float(dtype, values.data(), codes_.data(), values.size());
  }

  // `count` values from place `start` on, going round.
  std::vector<uint16_t> values(int64_t count, uint64_t start) const {
    std::vector<uint16_t> out(static_cast<size_t>(count));
    size_t at = start % codes_.size();
    for (size_t done = 0; done < out.size(); at = 0) {
      const size_t piece = std::min(out.size() - done, codes_.size() - at);
      std::memcpy(&out[done], &codes_[at], piece * sizeof(uint16_t));
      done += piece;
    }
    return out;
  }

 private:
  std::vector<uint16_t> codes_;
};

// What every code of a 16-bit type is worth.
std::vector<float> decoded(DType dtype) {
  std::vector<uint16_t> codes(65536);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  std::vector<float> values(codes.size());
  to_float(dtype, codes.data(), values.data(), codes.size());
  return values;
}

std::vector<uint16_t> codes_of(const Tensor& tensor) {
  const std::vector<std::byte> bytes = tensor.download();
  std::vector<uint16_t> codes(bytes.size() / sizeof(uint16_t));
  std::memcpy(codes.data(), bytes.data(), bytes.size());
  return codes;
}

// |given - expected|^2 and |expected|^2; infinite where an element is not finite.
struct Distance {
  double difference = 0, norm = 0;
  double relative() const {
    if (difference == 0) return 0;
    return norm == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(difference / norm);
  }
};

void add_distance(Distance& sum, const Tensor& given, const Tensor& expected, std::span<const float> value) {
  const auto d = codes_of(given), r = codes_of(expected);
  std::mutex mutex;
  parallel_for(static_cast<int64_t>(d.size()), 1 << 20, [&](int64_t begin, int64_t end) {
    Distance piece;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const double exact = value[r[i]], step = value[d[i]] - exact;
      piece.difference += std::isfinite(step) ? step * step : std::numeric_limits<double>::infinity();
      piece.norm += exact * exact;
    }
    std::lock_guard lock(mutex);
    sum.difference += piece.difference;
    sum.norm += piece.norm;
  });
}

// Rows of D spread over all of it, first and last included, and their fp64 product.
struct Sample {
  std::vector<int64_t> rows;
  std::vector<double> expected;  // rows.size() x n

  Sample(const GemmShape& s, std::span<const uint16_t> a, std::span<const uint16_t> b,
         std::span<const float> value) {
    const int64_t count = std::min(s.m, std::clamp<int64_t>(sample_work / (s.n * s.k), 2, 64));
    for (int64_t i = 0; i < count; ++i) rows.push_back(count == 1 ? 0 : i * (s.m - 1) / (count - 1));
    std::vector<double> left(rows.size() * static_cast<size_t>(s.k));
    for (size_t r = 0; r < rows.size(); ++r)
      for (int64_t i = 0; i < s.k; ++i)
        left[r * static_cast<size_t>(s.k) + static_cast<size_t>(i)] =
            value[a[static_cast<size_t>(rows[r] * s.k + i)]];
    expected.resize(rows.size() * static_cast<size_t>(s.n));
    parallel_for(s.n, 16, [&](int64_t begin, int64_t end) {
      std::vector<double> right(static_cast<size_t>(s.k));
      for (int64_t j = begin; j < end; ++j) {
        for (size_t i = 0; i < right.size(); ++i) right[i] = value[b[static_cast<size_t>(j * s.k) + i]];
        for (size_t r = 0; r < rows.size(); ++r)
          expected[r * static_cast<size_t>(s.n) + static_cast<size_t>(j)] =
              dot(&left[r * right.size()], right.data(), right.size());
      }
    });
  }

  Comparison of(const Tensor& d, const GemmShape& s, std::span<const float> value) const {
    const auto codes = codes_of(d);
    std::vector<float> given;
    for (const int64_t row : rows)
      for (int64_t j = 0; j < s.n; ++j) given.push_back(value[codes[static_cast<size_t>(row * s.n + j)]]);
    return compare(given, s.dtype, expected);
  }

 private:
  // Four sums, so that they do not wait for each other.
  static double dot(const double* a, const double* b, size_t n) {
    double sum[4] = {};
    for (size_t i = 0; i < n; ++i) sum[i % 4] += a[i] * b[i];
    return sum[0] + sum[1] + sum[2] + sum[3];
  }
};

struct BufferSet {
  Tensor a, b, ours, theirs;
};

// Somebody whose launches are measured; call i works on buffer set i % sets.
struct Contender {
  std::function<void(int set)> enqueue;
  int launches = 1;  // of a batch
  int next_set = 0;
  std::vector<double> seconds = {};  // of one launch, one entry a round

  double median() {
    auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
  }
};

class Bench {
 public:
  Bench(Device& device, cuda::Cublas* cublas, const GemmShape& shape, const GemmBenchOptions& options,
        report::Progress& progress)
      : device_(device), cublas_(cublas), shape_(shape), options_(options), progress_(progress) {}

  GemmBenchResult run() {
    progress_.stage(label() + ": inputs");
    value_ = decoded(shape_.dtype);
    make_buffers();
    result_.shape = shape_;
    result_.buffer_sets = static_cast<int>(sets_.size());
    for (const kernels::GemmKernel* kernel : options_.kernels) prepare(*kernel);
    if (cublas_) prepare_cublas();
    progress_.stage(label() + ": checking");
    check();
    measure();
    return std::move(result_);
  }

 private:
  std::string label() const { return to_string(shape_); }

  void make_buffers() {
    const Pool pool(shape_.dtype, options_.seed);
    const GemmShape& s = shape_;
    const auto bytes = static_cast<uint64_t>(s.m * s.k + s.n * s.k + s.m * s.n) * sizeof(uint16_t);
    const uint64_t sets =
        device_.simulated() ? 1 : std::max<uint64_t>(2, ceil_div(options_.working_set, bytes));
    uint64_t place = 0;
    auto filled = [&](int64_t rows, std::string_view name) {
      Tensor t = device_.tensor(s.dtype, {rows, s.k}, name);
      const auto values = pool.values(t.elements(), place);
      t.upload(std::as_bytes(std::span(values)));
      place += 7919 + static_cast<uint64_t>(t.elements());
      return t;
    };
    for (uint64_t i = 0; i < sets; ++i) {
      Tensor a = filled(s.m, "A"), b = filled(s.n, "B");
      Tensor ours = device_.tensor(s.dtype, {s.m, s.n}, "D");
      sets_.push_back({a, b, ours, cublas_ ? device_.tensor(s.dtype, {s.m, s.n}, "D of cuBLAS") : ours});
    }
    if (!device_.simulated()) fill_ = device_.tensor(DType::u32, {fill_elements}, "fill");
  }

  void prepare(const kernels::GemmKernel& kernel) {
    progress_.stage(format("{}: compiling {}", label(), kernel.name));
    GemmBenchEntry entry;
    entry.kernel = kernel.name;
    std::vector<std::shared_ptr<PreparedLaunch>> launches;
    try {
      const Compiled compiled = compile(kernel, shape_, device_.target());
      for (const BufferSet& s : sets_) {
        const Argument arguments[] = {s.a, s.b, s.ours};
        launches.push_back(device_.prepare(compiled, arguments));
      }
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::user) throw;
      entry.refusal = e.message();
    }
    result_.entries.push_back(std::move(entry));
    if (launches.size() == sets_.size())
      contenders_.push_back({[launches](int set) { launches[static_cast<size_t>(set)]->enqueue(); }});
  }

  void prepare_cublas() {
    contenders_.push_back({[this](int set) {
      const BufferSet& s = sets_[static_cast<size_t>(set)];
      cublas_->gemm(s.a.address(), s.b.address(), s.theirs.address(), shape_.m, shape_.n, shape_.k,
                    shape_.dtype);
    }});
  }

  // Enqueues `launches` after the fill, and times them.
  double batch(Contender& c, int launches) {
    if (fill_) fill_->poison();
    return device_.time([&] {
      for (int i = 0; i < launches; ++i) {
        c.enqueue(c.next_set);
        c.next_set = (c.next_set + 1) % static_cast<int>(sets_.size());
      }
    });
  }

  void check() {
    const auto a = codes_of(sets_[0].a), b = codes_of(sets_[0].b);
    const Sample sample(shape_, a, b, value_);
    if (cublas_) {
      for (BufferSet& s : sets_) s.theirs.poison();
      batch(contenders_.back(), static_cast<int>(sets_.size()));
      result_.cublas_error = sample.of(sets_[0].theirs, shape_, value_).error;
    }
    size_t next = 0;
    for (GemmBenchEntry& entry : result_.entries) {
      if (!entry.refusal.empty()) continue;
      for (BufferSet& s : sets_) s.ours.poison();
      batch(contenders_[next++], static_cast<int>(sets_.size()));
      entry.sample = sample.of(sets_[0].ours, shape_, value_);
      entry.sampled_rows = static_cast<int64_t>(sample.rows.size());
      if (!cublas_) continue;
      Distance distance;
      for (const BufferSet& s : sets_) add_distance(distance, s.ours, s.theirs, value_);
      entry.from_cublas = distance.relative();
      entry.from_cublas_limit = error_limit + *result_.cublas_error;
    }
  }

  // Until the GPU's clocks have settled under this load.
  void warm_up() {
    using Clock = std::chrono::steady_clock;
    if (device_.simulated()) return;
    for (const auto end = Clock::now() + warm_up_time; Clock::now() < end && !contenders_.empty();)
      for (Contender& c : contenders_) batch(c, c.launches);
  }

  void measure() {
    for (Contender& c : contenders_) {
      const double one = batch(c, 2) / 2;
      c.launches = device_.simulated()
                       ? 1
                       : static_cast<int>(std::clamp(batch_seconds / one, 3.0, 1.0 * most_launches));
    }
    warm_up();
    for (int round = 0; round < options_.rounds; ++round) {
      progress_.stage(format("{}: round {} of {}", label(), round + 1, options_.rounds));
      for (size_t i = 0; i < contenders_.size(); ++i) {
        Contender& c = contenders_[round % 2 == 0 ? i : contenders_.size() - 1 - i];
        c.seconds.push_back(batch(c, c.launches) / c.launches);
      }
    }
    size_t next = 0;
    for (GemmBenchEntry& entry : result_.entries) {
      if (!entry.refusal.empty()) continue;
      Contender& c = contenders_[next++];
      entry.seconds = c.median();
      entry.fastest = *std::min_element(c.seconds.begin(), c.seconds.end());
    }
    if (cublas_) result_.cublas_seconds = contenders_.back().median();
  }

  Device& device_;
  cuda::Cublas* cublas_;
  const GemmShape shape_;
  const GemmBenchOptions& options_;
  report::Progress& progress_;
  std::vector<float> value_;
  std::vector<BufferSet> sets_;
  std::optional<Tensor> fill_;
  std::vector<Contender> contenders_;  // the kernels that serve the shape, then cuBLAS
  GemmBenchResult result_;
};

int64_t extent(std::string_view text, const std::string& shape) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1)
    user_error({}, "--shapes: '{}' is no shape; expected MxNxK with extents of at least 1, as 4096x6144x4096",
               shape);
  return value;
}

GemmShape one_shape(const std::string& text, DType dtype) {
  const size_t first = text.find('x'),
               second = first == std::string::npos ? first : text.find('x', first + 1);
  if (second == std::string::npos) extent("", text);  // reports
  const std::string_view all = text;
  return {extent(all.substr(0, first), text), extent(all.substr(first + 1, second - first - 1), text),
          extent(all.substr(second + 1), text), dtype};
}

}  // namespace

bool GemmBenchEntry::good() const {
  return refusal.empty() && sample.good(error_limit) && (!from_cublas || *from_cublas < from_cublas_limit);
}

std::optional<double> GemmBenchResult::ratio(const GemmBenchEntry& entry) const {
  if (!entry.refusal.empty() || !cublas_seconds) return std::nullopt;
  return *cublas_seconds / entry.seconds;
}

std::vector<GemmShape> parse_gemm_shapes(const std::string& text, DType dtype) {
  std::vector<GemmShape> shapes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    const bool square = word == "square" || word == "all", llm = word == "llm" || word == "all";
    if (square)
      for (const int64_t e : {1024, 2048, 4096, 8192, 16384}) shapes.push_back({e, e, e, dtype});
    if (llm)
      for (const auto& [n, k] : std::vector<std::pair<int64_t, int64_t>>{
               {6144, 4096}, {28672, 4096}, {4096, 14336}, {8192, 8192}, {57344, 8192}, {8192, 28672}})
        for (const int64_t m : {128, 512, 2048, 8192}) shapes.push_back({m, n, k, dtype});
    if (!square && !llm) shapes.push_back(one_shape(word, dtype));
  }
  // 8192x8192x8192 is of both lists; means count it once.
  std::vector<GemmShape> once;
  for (const GemmShape& s : shapes)
    if (std::none_of(once.begin(), once.end(),
                     [&](const GemmShape& o) { return o.m == s.m && o.n == s.n && o.k == s.k; }))
      once.push_back(s);
  return once;
}

GemmBenchResult bench_gemm(Device& device, cuda::Cublas* cublas, const GemmShape& shape,
                           const GemmBenchOptions& options, report::Progress& progress) {
  return Bench(device, cublas, shape, options, progress).run();
}

}  // namespace tw::tools
