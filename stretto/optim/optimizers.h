#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizers.h"

namespace stretto::optim {

// The bundled optimizers, one per file. All throw ConfigError for options that are out of range or contradict
// each other.

// Zeiler 2012. State: square_avg, acc_delta.
std::unique_ptr<Optimizer> adadelta(const AdadeltaOptions& options);

// Shazeer & Stern 2018, like torch.optim.Adafactor. Requires whole tensors. State: row_var [.., R, 1] and
// col_var [.., 1, C] for tensors with two or more dimensions, variance for others.
std::unique_ptr<Optimizer> adafactor(const AdafactorOptions& options);

// Duchi et al. 2011. State: sum.
std::unique_ptr<Optimizer> adagrad(const AdagradOptions& options);

// Kingma & Ba 2015, algorithm 1; amsgrad: Reddi et al. 2018. State: exp_avg, exp_avg_sq, and max_exp_avg_sq
// with amsgrad.
std::unique_ptr<Optimizer> adam(const AdamOptions& options);

// Kingma & Ba 2015, algorithm 2. State: exp_avg, exp_inf.
std::unique_ptr<Optimizer> adamax(const AdamaxOptions& options);

// Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2). State: exp_avg, exp_avg_sq. It
// steps_rows() if eps > 0.
std::unique_ptr<Optimizer> adamw(const AdamwOptions& options);

// Averaged SGD (Polyak & Juditsky 1992). State: ax, the average of the weights, and the learning rate of the
// previous step.
std::unique_ptr<Optimizer> asgd(const AsgdOptions& options);

// You et al. 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", algorithm 2: a
// step of Adam, with weight decay added, is multiplied by the tensor's trust ratio, the norm of its weights
// divided by that of the step (1 if either is 0), from min_coeff to max_coeff. With bias_correction "step" it
// equals DeepSpeed's FusedLamb, which corrects the step size after the trust ratio. Requires whole tensors.
// State: exp_avg, exp_avg_sq.
std::unique_ptr<Optimizer> lamb(const LambOptions& options);

// Limited-memory BFGS (Nocedal 1980; line search: Nocedal and Wright, "Numerical Optimization", algorithms
// 3.5 and 3.6), like torch.optim.LBFGS. A step evaluates its batch up to max_eval times, so it reevaluates().
// All parameters form one vector, which every rank needs (Placement::whole_model), with one learning rate:
// bind() throws ConfigError for an lr_factor other than 1. State: history_size changes of the parameters and
// of the gradient, the last direction and gradient.
std::unique_ptr<Optimizer> lbfgs(const LbfgsOptions& options);

// Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks", like torch.optim.Muon,
// except that the matmuls of the Newton-Schulz iteration are computed in bf16 only if the model computes in
// bf16, otherwise in the type of the master weights. Requires whole tensors. Pieces that are not hidden
// matrices (ParameterPiece::is_hidden_matrix) are updated as by adamw(). State: momentum_buffer of a hidden
// matrix; exp_avg, exp_avg_sq of other pieces.
std::unique_ptr<Optimizer> muon(const MuonOptions& options);

// Dozat 2016. State: exp_avg, exp_avg_sq, and the product of its momenta.
std::unique_ptr<Optimizer> nadam(const NadamOptions& options);

// Liu et al. 2020. State: exp_avg, exp_avg_sq.
std::unique_ptr<Optimizer> radam(const RadamOptions& options);

// Tieleman & Hinton 2012; centered: Graves 2013. State: square_avg, and grad_avg (centered), momentum_buffer
// (momentum > 0).
std::unique_ptr<Optimizer> rmsprop(const RmspropOptions& options);

// Riedmiller & Braun 1993, without weight backtracking. State: prev, step_size.
std::unique_ptr<Optimizer> rprop(const RpropOptions& options);

// Stochastic gradient descent, with the momentum of Sutskever et al. 2013. State: momentum_buffer if momentum
// > 0. Throws ConfigError for nesterov without momentum, or with dampening.
std::unique_ptr<Optimizer> sgd(const SgdOptions& options);

// Adam that leaves rows without a gradient unchanged: torch.optim.SparseAdam for sparse tables
// (nn::Embedding), where neither the averages nor the weights of other rows change, and Adam for all other
// parameters, which torch's version rejects. A row has a gradient if one of its values is nonzero, so that
// steps are the same under every strategy; torch also updates a row that was looked up with a zero gradient.
std::unique_ptr<Optimizer> sparse_adam(const SparseAdamOptions& options);

}  // namespace stretto::optim
