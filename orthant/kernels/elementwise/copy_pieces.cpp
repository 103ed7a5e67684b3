#include "orthant/kernels/factories.hpp"

namespace orthant::kernels::elementwise {
namespace {

/// One copy for each piece.
class CopyPieces final : public Primitive {
 public:
  CopyPieces(const model::CopyPiecesTask& task, int threads) {
    for (const model::CopyPiecesTask::Piece& piece : task.pieces)
      copies_.push_back(make_copy({.accumulate = task.accumulate, .src = piece.src, .dst = piece.dst}, threads));
  }

  [[nodiscard]] std::string name() const override { return copies_.empty() ? "orthant:copy" : copies_.front()->name(); }

  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override {
    for (const auto& copy : copies_) copy->execute(context, arguments, scratch);
  }

 private:
  std::vector<std::unique_ptr<Primitive>> copies_;
};

}  // namespace

std::unique_ptr<Primitive> make_copy_pieces(const model::CopyPiecesTask& task, int threads) {
  return std::make_unique<CopyPieces>(task, threads);
}

}  // namespace orthant::kernels::elementwise
