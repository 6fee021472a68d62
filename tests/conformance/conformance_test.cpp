#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "case.h"
#include "tests/support/assemble.h"
#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/runtime/cuda_driver.h"
#include "tilewright/runtime/device.h"

// Every case of this folder, or of --cases=FOLDER, on the simulated H200, under every schedule, against the
// values a real one gave. With --record=cuda:0 the values are recorded anew, with --check=cuda:0 the GPU is
// compared with them.
namespace tw::conformance {
namespace {

std::string root = TW_SOURCE_DIR "/tests/conformance";  // --cases=FOLDER: a copy of it elsewhere
constexpr const char* kSchedules[] = {"eager", "late", "random:1", "random:2", "random:3"};

Tensor tensor_of(Device& device, const Array& array) {
  return device.tensor(DType::u8, {static_cast<int64_t>(array.bytes())}, array.name);
}

// Runs a case; the outputs' elements in order. Fails the test when an output was not written.
std::vector<Elements> run_case(Device& device, const Case& test, const LaunchOptions& options) {
  const ptx::Module module = ptx::parse(test.ptx, test.ptx_path);
  std::vector<Tensor> tensors;
  for (const Array& input : test.inputs)
    tensors.emplace_back(tensor_of(device, input)).upload(to_bytes(input.type, *input.contents));
  for (const Array& output : test.outputs) {
    Tensor& tensor = tensors.emplace_back(tensor_of(device, output));
    if (output.contents) tensor.upload(to_bytes(output.type, *output.contents));
    else tensor.poison();
  }
  sim::Launch launch = test.launch;
  for (const Tensor& tensor : tensors) {
    const uint64_t address = tensor.address();
    const std::byte* bytes = reinterpret_cast<const std::byte*>(&address);
    launch.params.insert(launch.params.end(), bytes, bytes + sizeof address);
  }
  for (const Map& map : test.maps) {
    sim::TensorMapSpec spec = map.spec;
    spec.address = std::ranges::find(tensors, map.array, &Tensor::name)->address();
    const sim::TensorMapObject object = device.tensor_map(spec);
    launch.params.resize(round_up<size_t>(launch.params.size(), sim::kTensorMapAlign));
    launch.params.insert(launch.params.end(), object.begin(), object.end());
  }
  device.launch_ptx(module, test.entry, launch, options);
  device.synchronize();
  std::vector<Elements> results;
  for (size_t i = 0; i < test.outputs.size(); ++i) {
    const Tensor& tensor = tensors[test.inputs.size() + i];
    if (device.simulated()) {
      EXPECT_EQ(tensor.unwritten(), 0u) << test.outputs[i].name << " was not written in full";
    }
    results.push_back(from_bytes(test.outputs[i].type, tensor.download()));
  }
  return results;
}

void expect_recorded(const Case& test, const std::vector<Elements>& results) {
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(mismatch(test.outputs[i], results[i]), "") << test.name;
}

// Cases that may stop as not modelled, one name a line; every other case must run.
const std::set<std::string>& not_modelled_cases() {
  static const std::set<std::string> names = [] {
    std::set<std::string> lines;
    std::ifstream in(root + "/not_modelled.txt");
    for (std::string line; std::getline(in, line);)
      if (!line.empty() && line[0] != '#') lines.insert(line);
    return lines;
  }();
  return names;
}

// One device for all cases of a process: programs stay decoded.
Device& simulated_h200() {
  static const std::shared_ptr<Device> device = Device::open("sim:h200");
  return *device;
}

class Simulated : public ::testing::Test {
 public:
  explicit Simulated(std::string name) : name_(std::move(name)) {}
  void TestBody() override {
    const Case test = load_case(root, name_);
    EXPECT_TRUE(testing::assembles(test.ptx, "sm_90a"));
    if (!test.recorded()) GTEST_SKIP() << name_ << " has no recorded values";
    if (!test.fault.empty()) return expect_stop(test);
    const bool may_stop = not_modelled_cases().contains(name_);
    try {
      for (const char* schedule : kSchedules) {
        SCOPED_TRACE(schedule);
        expect_recorded(test, run_case(simulated_h200(), test, scheduled(schedule)));
      }
    } catch (const Error& error) {
      if (may_stop && error.kind() == ErrorKind::not_modelled) GTEST_SKIP() << error.what();
      ADD_FAILURE() << error.what();
    }
    if (may_stop) std::cout << name_ << " runs: take it off not_modelled.txt\n";
  }

 private:
  static LaunchOptions scheduled(const char* schedule) {
    LaunchOptions options;
    options.sim.schedule = sim::parse_schedule(schedule);
    return options;
  }

  // Where the GPU faulted the simulator stops, and names the rule.
  static void expect_stop(const Case& test) {
    for (const char* schedule : kSchedules) {
      SCOPED_TRACE(schedule);
      try {
        run_case(simulated_h200(), test, scheduled(schedule));
        ADD_FAILURE() << test.name << " ran to its end; the GPU gave: " << test.fault;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(test.breaks), std::string::npos) << error.what();
      }
    }
  }

  std::string name_;
};

class OnGpu : public ::testing::Test {
 public:
  OnGpu(std::string name, std::string device, bool record)
      : name_(std::move(name)), device_(std::move(device)), record_(record) {}
  void TestBody() override {
    const Case test = load_case(root, name_);
    if (!test.breaks.empty())
      GTEST_SKIP() << "a fault would end this process's context; record.py runs " << name_;
    const std::shared_ptr<Device> device = Device::open(device_);
    const std::vector<Elements> results = run_case(*device, test, {});
    if (record_) {
      record_case(root, name_, results, recording());
    } else {
      ASSERT_TRUE(test.recorded()) << name_ << " has no recorded values";
      expect_recorded(test, results);
    }
  }

 private:
  static Recording recording() {
    const cuda::Driver& driver = cuda::driver();
    char product[256] = "";
    int version = 0;
    driver.check(driver.cuDeviceGetName(product, sizeof product, 0), "asking for the GPU's name");
    driver.check(driver.cuDriverGetVersion(&version), "asking for the driver's version");
    const std::chrono::year_month_day today(
        std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
    return {
        .device = product,
        .driver = format("CUDA {}.{}", version / 1000, version % 1000 / 10),
        .date = format("{}-{:02}-{:02}", int{today.year()}, unsigned{today.month()}, unsigned{today.day()})};
  }

  std::string name_, device_;
  bool record_;
};

void register_cases(const std::string& device, bool record) {
  for (const std::string& name : case_names(root))
    ::testing::RegisterTest("Conformance", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [=]() -> ::testing::Test* {
                              if (device.empty()) return new Simulated(name);
                              return new OnGpu(name, device, record);
                            });
}

}  // namespace
}  // namespace tw::conformance

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const char* environment = std::getenv("TW_CONFORMANCE_RECORD");
  std::string device = environment ? environment : "";
  bool record = environment != nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string_view option = argument.substr(0, equals);
    const std::string value(argument.substr(std::min(equals + 1, argument.size())));
    if (option == "--record" || option == "--check") {
      device = value;
      record = option == "--record";
    } else if (option == "--cases" && std::filesystem::exists(value + "/not_modelled.txt")) {
      tw::conformance::root = value;
    } else {
      std::cerr << argument
                << ": there are --record=DEVICE, --check=DEVICE and --cases=FOLDER, a folder such as "
                << tw::conformance::root << "\n";
      return 2;
    }
  }
  tw::conformance::register_cases(device, record);
  return RUN_ALL_TESTS();
}
