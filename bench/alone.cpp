// scratch: in-situ step times against replay and alone protocols
#include "orthant/calibrate/replay.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/run.hpp"
#include "orthant/comm/typed.hpp"
#include "orthant/comm/machine.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/engine/step_memory.hpp"
#include "orthant/model/network.hpp"
#include "orthant/plan/request.hpp"
#include "orthant/train/loader.hpp"
#include "orthant/train/open_data.hpp"
#include "orthant/train/chrome_trace.hpp"
#include <algorithm>
#include <map>
#include <cstdlib>
using namespace orthant;
static double median(std::vector<double> v) { if (v.empty()) return 0; std::sort(v.begin(), v.end()); return v[v.size()/2]; }
static double minimum(const std::vector<double>& v) { return v.empty()?0:*std::min_element(v.begin(), v.end()); }
static std::string family(const model::Task& t) {
  static const char* names[]={"conv","prepare","dense","pool","normsums","norm","act","softmax","copy","copypieces","fill","add","dropout","biasgrad","losssums","loss","update"};
  std::string n = names[t.index()];
  if (auto* c = std::get_if<model::ConvTask>(&t)) n += std::string(" ")+model::name_of(c->algorithm)+" "+model::name_of(c->pass);
  return n;
}
int main(int argc, char** argv) {
  std::string name = argv[1], input = argv[2]; int batch = atoi(argv[3]); std::string grid = argv[4]; int threads = atoi(argv[5]); int rounds = atoi(argv[6]);
  bool verbose = argc > 7;
  return comm::run([&](comm::Comm& comm) {
    auto share = comm::processor_share(comm); (void)share;
    auto graph = model::load_network(name, {.input = input, .mini_batch = batch, .settings = {}});
    auto plan = plan::make_plan(graph, {.grid = grid=="1"?"":grid}, comm.size());
    engine::SessionOptions options{.lowering = {.optimizer = {.kind = model::OptimizerKind::sgd, .momentum = 0.9}}, .threads = threads,
      .kernels = {.threads = threads, .measure = true, .cache_path = engine::choice_cache_path()}};
    engine::Session session(graph, plan, comm, options);
    session.initialise_weights(1);
    train::DataOptions data; data.samples = batch;
    auto dataset = train::open_data(data, graph, "");
    train::Loader(train::MiniBatches(*dataset, graph, {})).load(1, session.engine());
    auto& e = session.engine(); const auto& s = e.schedule();
    calibrate::Replay replay(s, threads, false);
    std::size_t n = replay.steps().size();
    std::vector<std::vector<double>> insitu(n), rep(n), warm(n), cold(n);
    std::vector<double> whole;
    kernels::Context ctx{.step=1,.seed=1,.learning_rate=1e-6};
    std::vector<float> junk(8<<20);
    for (int r = 0; r < rounds + 1; ++r) {
      for (int k = 0; k < 3; ++k) {
        engine::Trace trace; trace.events.reserve(s.steps.size());
        comm.barrier();
        double t0 = engine::clock_seconds();
        e.run(ctx, trace); ctx.step++;
        if (r && k) { whole.push_back(engine::clock_seconds()-t0);
          for (std::size_t i = 0; i < n; ++i) { auto& ev = trace.events[(std::size_t)replay.steps()[i].step]; insitu[i].push_back((double)(ev.end_ns-ev.begin_ns)*1e-9);} }
      }
      for (int k = 0; k < 3; ++k) {
        comm.barrier();
        for (std::size_t i = 0; i < n; ++i) { double t = engine::clock_seconds(); replay.execute(i,0); t = engine::clock_seconds()-t; if (r&&k) rep[i].push_back(t); }
      }
      if (r) for (std::size_t i = 0; i < n; ++i) {
        replay.execute(i,0);
        for (int k=0;k<3;++k) { double t = engine::clock_seconds(); replay.execute(i,0); warm[i].push_back(engine::clock_seconds()-t); }
        for (int k=0;k<2;++k) {
          #pragma omp parallel for num_threads(threads)
          for (int j=0;j<(threads*1)<<20;++j) junk[(std::size_t)j]+=1;
          double t = engine::clock_seconds(); replay.execute(i,0); cold[i].push_back(engine::clock_seconds()-t); }
      }
    }
    struct Sum { double a=0,b=0,c=0,d=0,m=0; int n=0; };
    std::map<std::string, Sum> fam; Sum all;
    if (comm.rank()==0) {
      for (std::size_t i = 0; i < n; ++i) {
        double a=median(insitu[i]),b=median(rep[i]),c=median(warm[i]),d=median(cold[i]);
        for (Sum* x : {&fam[family(replay.steps()[i].ways[0].task)], &all}) { x->a+=a;x->b+=b;x->c+=c;x->d+=d;x->m+=minimum(insitu[i]);x->n++; }
        if (verbose) fmt::print("{:<40} {:9.3f} {:9.3f} {:9.3f} {:9.3f} {:+.1f}%\n", s.steps[(std::size_t)replay.steps()[i].step].name, a*1e3,b*1e3,c*1e3,d*1e3,(b/a-1)*100);
      }
      fam["ALL"]=all;
      fmt::print("{} {} b{} {} t{}: whole step median {:.3f} min {:.3f} ms\n", name, input, batch, grid, threads, median(whole)*1e3, minimum(whole)*1e3);
      fmt::print("| {:<30} | {:>4} | {:>9} | {:>18} | {:>18} | {:>18} | {:>9} |\n","family","n","in situ","replay","warm alone","flushed alone","best");
      for (auto& [k,x]:fam) fmt::print("| {:<30} | {:>4} | {:9.3f} | {:9.3f} {:+6.1f} % | {:9.3f} {:+6.1f} % | {:9.3f} {:+6.1f} % | {:9.3f} |\n",k,x.n,x.a*1e3,x.b*1e3,(x.b/x.a-1)*100,x.c*1e3,(x.c/x.a-1)*100,x.d*1e3,(x.d/x.a-1)*100,x.m*1e3);
    }
    comm.barrier();
    return 0;
  });
}
