#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/sim/testing.h"

// wmma.load, wmma.mma and wmma.store together: which lane holds what is unspecified, the product is not.
namespace tw::sim::testing {
namespace {

struct Operand {
  const char* type;
  DType dtype;
  int registers;
};
struct Product {
  const char* shape;
  int m, n, k;
  Operand a, b, c;
};

int width(const Operand& o) { return bits(o.dtype) / 8; }

void store_value(const Operand& o, double value, std::byte* to) {
  uint64_t code = o.dtype == DType::f64 ? std::bit_cast<uint64_t>(value)
                  : is_integer(o.dtype) ? static_cast<uint64_t>(static_cast<int64_t>(value))
                                        : from_double(o.dtype, value);
  std::memcpy(to, &code, static_cast<size_t>(width(o)));
}

double load_value(const Operand& o, const std::byte* from) {
  uint64_t code = 0;
  std::memcpy(&code, from, static_cast<size_t>(width(o)));
  if (o.dtype == DType::f64) return std::bit_cast<double>(code);
  if (o.dtype == DType::i32) return static_cast<int32_t>(code);
  return to_double(o.dtype, static_cast<uint32_t>(code));
}

// A matrix in memory, its lines `stride` elements apart.
struct Matrix {
  int rows, columns, stride;
  bool row_major;
  Operand type;

  size_t bytes() const { return static_cast<size_t>((row_major ? rows : columns) * stride * width(type)); }
  size_t at(int r, int c) const {
    return static_cast<size_t>((row_major ? r * stride + c : c * stride + r) * width(type));
  }
  const char* layout() const { return row_major ? "row" : "col"; }
};

std::string registers(char name, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += format("{}%{}{}", i ? ", " : "", name, i);
  return "{" + list + "}";
}

std::string kernel(const Product& p, const Matrix& a, const Matrix& b, const Matrix& c) {
  const auto file = [](const Operand& o) {
    return o.dtype == DType::f64 ? "f64" : o.dtype == DType::f32 ? "f32" : "b32";
  };
  std::string text = ".reg .b64 %pa, %pb, %pc;\n";
  text +=
      format(".reg .{} %a<9>, %b<9>; .reg .{} %c<9>;\n", p.a.dtype == DType::f64 ? "f64" : "b32", file(p.c));
  text += "ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c];\n";
  const std::string ra = registers('a', p.a.registers), rb = registers('b', p.b.registers),
                    rc = registers('c', p.c.registers);
  text += format("wmma.load.a.sync.aligned.{}.{}.global.{} {}, [%pa], {};\n", a.layout(), p.shape, p.a.type,
                 ra, a.stride);
  text += format("wmma.load.b.sync.aligned.{}.{}.global.{} {}, [%pb], {};\n", b.layout(), p.shape, p.b.type,
                 rb, b.stride);
  text += format("wmma.load.c.sync.aligned.{}.{}.global.{} {}, [%pc], {};\n", c.layout(), p.shape, p.c.type,
                 rc, c.stride);
  const std::string types = p.a.dtype == DType::f16
                                ? format("{}.{}", p.c.type, p.c.type)
                                : format("{}.{}.{}.{}", p.c.type, p.a.type, p.b.type, p.c.type);
  text += format("wmma.mma.sync.aligned.{}.{}.{}{}.{} {}, {}, {}, {};\n", a.layout(), b.layout(), p.shape,
                 p.a.dtype == DType::f64 ? ".rn" : "", types, rc, ra, rb, rc);
  text += format("wmma.store.d.sync.aligned.{}.{}.global.{} [%pc], {}, {};\nexit;", c.layout(), p.shape,
                 p.c.type, rc, c.stride);
  return text;
}

constexpr const char* kParameters = ".param .u64 a, .param .u64 b, .param .u64 c";

// Small integers, so that every type holds the sums.
void check(const Product& p, bool a_rows, bool b_rows, bool c_rows) {
  const Matrix a{p.m, p.k, 64, a_rows, p.a}, b{p.k, p.n, 64, b_rows, p.b}, c{p.m, p.n, 64, c_rows, p.c};
  std::mt19937 random(1);
  std::vector<std::vector<double>> values;
  std::vector<std::vector<std::byte>> memory;
  for (const Matrix* m : {&a, &b, &c}) {
    values.emplace_back(static_cast<size_t>(m->rows * m->columns));
    memory.emplace_back(m->bytes());
    for (int r = 0; r < m->rows; ++r)
      for (int col = 0; col < m->columns; ++col) {
        double& v = values.back()[static_cast<size_t>(r * m->columns + col)];
        v = static_cast<double>(random() % 7) - (m->type.dtype == DType::u8 ? 0 : 3);
        store_value(m->type, v, &memory.back()[m->at(r, col)]);
      }
  }
  GlobalMemory global;
  Buffer<std::byte> buffer_a(global, memory[0], "a"), buffer_b(global, memory[1], "b"),
      buffer_c(global, memory[2], "c");
  Program program =
      compile(module_text(kParameters, kernel(p, a, b, c), "sm_90a"), small_machine("sm_90a", 1));
  program.run({{},
               {32, 1, 1},
               {},
               0,
               Params().add(buffer_a.address).add(buffer_b.address).add(buffer_c.address).bytes()},
              global, {});
  const std::vector<std::byte> out = buffer_c.get();
  for (int m = 0; m < p.m; ++m)
    for (int n = 0; n < p.n; ++n) {
      double sum = values[2][static_cast<size_t>(m * p.n + n)];
      for (int k = 0; k < p.k; ++k)
        sum += values[0][static_cast<size_t>(m * p.k + k)] * values[1][static_cast<size_t>(k * p.n + n)];
      ASSERT_EQ(load_value(p.c, &out[c.at(m, n)]), sum) << p.shape << " " << p.a.type << " " << m << " " << n;
    }
}

const Operand kF16{"f16", DType::f16, 8}, kF16Sum{"f16", DType::f16, 4}, kF32{"f32", DType::f32, 8},
    kS32{"s32", DType::i32, 8}, kTf32{"tf32", DType::tf32, 4}, kF64{"f64", DType::f64, 1},
    kF64Sum{"f64", DType::f64, 2};
Operand of(Operand o, int count) {
  o.registers = count;
  return o;
}

std::vector<Product> products() {
  const Operand bf16{"bf16", DType::bf16, 4}, s8{"s8", DType::i8, 2}, u8{"u8", DType::u8, 2};
  std::vector<Product> out{{"m16n16k8", 16, 16, 8, kTf32, kTf32, kF32},
                           {"m8n8k4", 8, 8, 4, kF64, kF64, kF64Sum}};
  for (const Operand& sum : {kF32, kF16Sum}) {
    out.push_back({"m16n16k16", 16, 16, 16, kF16, kF16, sum});
    out.push_back({"m32n8k16", 32, 8, 16, kF16, kF16, sum});
    out.push_back({"m8n32k16", 8, 32, 16, kF16, kF16, sum});
  }
  out.push_back({"m16n16k16", 16, 16, 16, bf16, bf16, kF32});
  out.push_back({"m32n8k16", 32, 8, 16, of(bf16, 8), of(bf16, 2), kF32});
  for (const Operand& o : {s8, u8}) {
    out.push_back({"m16n16k16", 16, 16, 16, o, o, kS32});
    out.push_back({"m8n32k16", 8, 32, 16, of(o, 1), of(o, 4), kS32});
  }
  return out;
}

TEST(Wmma, ProductsInEveryLayout) {
  for (const Product& p : products())
    for (int layouts = 0; layouts < 8; ++layouts) check(p, layouts & 1, layouts & 2, layouts & 4);
}

std::string fault_of(const char* load) {
  GlobalMemory global;
  Buffer<uint32_t> in(global, std::vector<uint32_t>(1024, 0), "a");
  Program program =
      compile(module_text(kParameters,
                          std::string(".reg .b64 %pa; .reg .b32 %x<8>, %t; ld.param.u64 %pa, [a];"
                                      "mov.u32 %t, %tid.x; or.b32 %t, %t, 16;") +
                              load + " exit;",
                          "sm_90a"),
              small_machine("sm_90a", 1));
  try {
    program.run({{}, {32, 1, 1}, {}, 0, Params().add(in.address).add(in.address).add(in.address).bytes()},
                global, {});
  } catch (const Error& e) {
    return e.message();
  }
  return "no fault";
}

// "Matrix Storage for WMMA"; wmma.load: one address and one stride for the warp, no stride below the default.
TEST(Wmma, MisplacedMatricesAreFaults) {
  const std::string load =
      "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}, ";
  EXPECT_NE(fault_of((load + "[%pa+16], 16;").c_str()).find("must be multiples of the fragment's 32 bytes"),
            std::string::npos);
  EXPECT_NE(fault_of((load + "[%pa], 24;").c_str()).find("stride of 48 bytes must be multiples"),
            std::string::npos);
  EXPECT_NE(fault_of((load + "[%pa], 8;").c_str()).find("the stride 8 is below the 16 elements of a line"),
            std::string::npos);
  EXPECT_NE(fault_of((load + "[%pa], %t;").c_str()).find("one address and one stride for the whole warp"),
            std::string::npos);
  EXPECT_EQ(fault_of((load + "[%pa];").c_str()), "no fault");
}

}  // namespace
}  // namespace tw::sim::testing
