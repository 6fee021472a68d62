#include <gtest/gtest.h>

#include "tilewright/base/error.h"
#include "tilewright/sim/testing.h"

// PTX ISA, "call", "ret" and "Abstracting the ABI".
namespace tw::sim::testing {
namespace {

// A kernel of one warp that stores what `body` leaves in %d; %lane is the lane. `functions` come before it.
std::vector<uint32_t> run(std::string_view functions, std::string_view body) {
  const std::string text = module_text(
      ".param .u64 out",
      tw::format(".reg .pred %p, %q; .reg .b32 %d, %e, %lane; .reg .b64 %out;\n"
                 "mov.u32 %lane, %tid.x; mov.b32 %d, 0;\n{}\n"
                 "ld.param.u64 %out, [out]; mad.wide.u32 %out, %lane, 4, %out; st.global.b32 [%out], %d;",
                 body),
      "sm_90a", functions);
  Program program = compile(text);
  GlobalMemory memory;
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(32, 0xABCD), "out");
  program.run({{1, 1, 1}, {32, 1, 1}, {}, 0, Params().add(out.address).bytes()}, memory, {});
  return out.get();
}

std::string message(std::string_view functions, std::string_view body) {
  try {
    run(functions, body);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

template <class F>
void expect_lanes(const std::vector<uint32_t>& got, F wanted) {
  for (uint32_t l = 0; l < 32; ++l) ASSERT_EQ(got[l], wanted(l)) << "lane " << l;
}

constexpr const char* kFactorial = R"(
.func (.param .b32 r) factorial(.param .b32 n) {
  .reg .pred %p; .reg .b32 %n, %m, %f;
  ld.param.b32 %n, [n];
  mov.b32 %f, 1;
  setp.le.u32 %p, %n, 1;
  @%p bra done;
  sub.u32 %m, %n, 1;
  { .param .b32 x; .param .b32 y;
    st.param.b32 [x], %m;
    call (y), factorial, (x);
    ld.param.b32 %f, [y]; }
  mul.lo.u32 %f, %f, %n;
done:
  st.param.b32 [r], %f;
  ret;
}
)";

TEST(Call, RecursionKeepsEachLanesValues) {
  const auto got = run(kFactorial, R"(
    rem.u32 %e, %lane, 12;
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a], %e;
      call (b), factorial, (a);
      ld.param.b32 %d, [b]; })");
  expect_lanes(got, [](uint32_t l) {
    uint32_t f = 1;
    for (uint32_t n = 2; n <= l % 12; ++n) f *= n;
    return f;
  });
}

// fib(n - 1) must survive the call of fib(n - 2), and lanes take different ways through the tree.
TEST(Call, TwoCallsInARecursion) {
  const auto got = run(R"(
.func (.param .b32 r) fib(.param .b32 n) {
  .reg .pred %p; .reg .b32 %n, %a, %b;
  ld.param.b32 %n, [n];
  setp.lt.u32 %p, %n, 2;
  @%p st.param.b32 [r], %n;
  @%p ret;
  sub.u32 %n, %n, 1;
  { .param .b32 x; .param .b32 y; st.param.b32 [x], %n; call (y), fib, (x); ld.param.b32 %a, [y]; }
  sub.u32 %n, %n, 1;
  { .param .b32 x; .param .b32 y; st.param.b32 [x], %n; call (y), fib, (x); ld.param.b32 %b, [y]; }
  add.u32 %a, %a, %b;
  st.param.b32 [r], %a;
}
)",
                       "rem.u32 %e, %lane, 9; { .param .b32 a; .param .b32 b; st.param.b32 [a], %e;\n"
                       "call (b), fib, (a); ld.param.b32 %d, [b]; }");
  const uint32_t fib[] = {0, 1, 1, 2, 3, 5, 8, 13, 21};
  expect_lanes(got, [&](uint32_t l) { return fib[l % 9]; });
}

TEST(Call, FunctionsThatCallEachOther) {
  const auto got = run(R"(
.func (.param .b32 r) odd(.param .b32 n);
.func (.param .b32 r) even(.param .b32 n) {
  .reg .pred %p; .reg .b32 %n;
  ld.param.b32 %n, [n];
  setp.eq.u32 %p, %n, 0;
  @%p st.param.b32 [r], 1;
  @%p ret;
  sub.u32 %n, %n, 1;
  { .param .b32 x; .param .b32 y; st.param.b32 [x], %n; call (y), odd, (x); ld.param.b32 %n, [y]; }
  st.param.b32 [r], %n;
  ret;
}
.func (.param .b32 r) odd(.param .b32 n) {
  .reg .pred %p; .reg .b32 %n;
  ld.param.b32 %n, [n];
  setp.eq.u32 %p, %n, 0;
  @%p st.param.b32 [r], 0;
  @%p ret;
  sub.u32 %n, %n, 1;
  { .param .b32 x; .param .b32 y; st.param.b32 [x], %n; call (y), even, (x); ld.param.b32 %n, [y]; }
  st.param.b32 [r], %n;
  ret;
}
)",
                       "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %lane;\n"
                       "call (b), even, (a); ld.param.b32 %d, [b]; }");
  expect_lanes(got, [](uint32_t l) { return l % 2 == 0 ? 1u : 0u; });
}

// The names of call variables are local to their scopes; arrays pass by value, byte for byte.
TEST(Call, ArgumentsOfSeveralSizes) {
  const auto got = run(R"(
.func (.param .b32 r) sum(.param .align 8 .b8 s[16], .param .b16 h) {
  .reg .b16 %h; .reg .b32 %a; .reg .b64 %w, %v;
  ld.param.v2.b64 {%w, %v}, [s];
  ld.param.u16 %h, [h];
  add.u64 %w, %w, %v;
  cvt.u32.u64 %a, %w;
  { .reg .b32 %x; cvt.u32.u16 %x, %h; add.u32 %a, %a, %x; }
  st.param.b32 [r], %a;
  ret;
}
.func (.param .b64 r) twice(.param .b64 x) {
  .reg .b64 %x;
  ld.param.b64 %x, [x];
  add.u64 %x, %x, %x;
  st.param.b64 [r], %x;
  ret;
}
)",
                       R"(
    .reg .b64 %w; .reg .b16 %h;
    cvt.u64.u32 %w, %lane;
    { .param .b64 x; .param .b64 r; st.param.b64 [x], %w; call.uni (r), twice, (x); ld.param.b64 %w, [r]; }
    cvt.u16.u32 %h, %lane;
    { .param .align 8 .b8 x[16]; .param .b16 h; .param .b32 r;
      st.param.b64 [x], %w; st.param.b64 [x+8], 1000; st.param.b16 [h], %h;
      call (r), sum, (x, h);
      ld.param.b32 %d, [r]; })");
  expect_lanes(got, [](uint32_t l) { return 2 * l + 1000 + l; });
}

// "Arguments may be registers, immediate constants, or variables in .param space."
TEST(Call, RegistersAndConstantsAsArguments) {
  const auto got = run(R"(
.func (.param .b32 r) scale(.param .b32 x, .param .f32 f) {
  .reg .b32 %x; .reg .f32 %f;
  ld.param.b32 %x, [x];
  ld.param.f32 %f, [f];
  cvt.rzi.u32.f32 %f, %f;
  mul.lo.u32 %x, %x, %f;
  st.param.b32 [r], %x;
  ret;
}
)",
                       "setp.lt.u32 %p, %lane, 10;\n@%p call (%d), scale, (%lane, 0f40E00000);");
  expect_lanes(got, [](uint32_t l) { return l < 10 ? 7 * l : 0; });
}

TEST(Call, ThreadsMayExitInside) {
  const auto got =
      run(".func leave_odd(.param .b32 x) { .reg .pred %p; .reg .b32 %x; ld.param.b32 %x, [x];\n"
          "and.b32 %x, %x, 1; setp.eq.u32 %p, %x, 1; @%p exit; }\n",
          "{ .param .b32 a; st.param.b32 [a], %lane; call leave_odd, (a); } mov.b32 %d, 5;");
  expect_lanes(got, [](uint32_t l) { return l % 2 ? 0xABCDu : 5u; });
}

TEST(Call, LanesFromTwoPlacesRunTogetherAndReturnApart) {
  const auto got = run(R"(
.func (.param .b32 r) active(.param .b32 x) {
  .reg .b32 %m, %x;
  ld.param.b32 %x, [x];
  add.u32 %x, %x, 1;
  st.param.b32 [r], %x;
  ret;
}
)",
                       R"(
    and.b32 %e, %lane, 3;
    setp.eq.u32 %p, %e, 0;
    @%p bra first;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %lane; call (b), active, (a); ld.param.b32 %d, [b]; }
    add.u32 %d, %d, 100;
    bra done;
  first:
    { .param .b32 a; .param .b32 b; st.param.b32 [a], 40; call (b), active, (a); ld.param.b32 %d, [b]; }
    add.u32 %d, %d, 200;
  done:)");
  expect_lanes(got, [](uint32_t l) { return l % 4 == 0 ? 241 : l + 101; });
}

TEST(Call, EndlessRecursionIsAFault) {
  const std::string text = message(".func forever() { call forever; }\n", "call forever;");
  EXPECT_NE(text.find("call of forever: 1000 calls are open already"), std::string::npos) << text;
}

TEST(Call, WhatDoesNotFitIsSaid) {
  EXPECT_NE(message(kFactorial, "{ .param .b32 b; call (b), factorial, (%lane, %lane); }")
                .find("call with 2 arguments, the function has 1"),
            std::string::npos);
  EXPECT_NE(message(kFactorial, "{ .param .b64 a; .param .b32 b; call (b), factorial, (a); }")
                .find("'a' has 8 bytes, the parameter 'n' has 4"),
            std::string::npos);
  EXPECT_NE(message(".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n",
                    "{ .param .b64 f; .param .b64 a; .param .b32 r; call (r), vprintf, (f, a); }")
                .find("vprintf has no body in this module"),
            std::string::npos);
  EXPECT_NE(message(".func f() { .local .b32 x; .reg .b32 %r; st.local.b32 [x], 1; call f; }\n", "call f;")
                .find("x, a variable of the recursive function f, is not modelled"),
            std::string::npos);
}

}  // namespace
}  // namespace tw::sim::testing
