// SPDX-License-Identifier: Apache-2.0
//
// ns-3 3.37's TcpCubic has no Reno-friendly region (RFC 9438 section 4.3; ns-3 gained it in 3.41),
// so it is too slow on paths with a small bandwidth-delay product. This adds that region on top of
// the unchanged TcpCubic: the window is never below an estimate that grows like AIMD with CUBIC's factor.

#pragma once

#include "ns3/tcp-cubic.h"

class RenoFriendlyCubic : public ns3::TcpCubic
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId tid = ns3::TypeId("astraea::RenoFriendlyCubic")
                                     .SetParent<ns3::TcpCubic>()
                                     .AddConstructor<RenoFriendlyCubic>();
        return tid;
    }

    std::string GetName() const override
    {
        return "RenoFriendlyCubic";
    }

    void IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segmentsAcked) override
    {
        const bool avoidance = m_windowBefore > 0 && tcb->m_cWnd >= tcb->m_ssThresh;
        if (avoidance && m_estimate <= 0)
        {
            // The first acknowledgement after recovery covers the whole old window: it only opens the epoch.
            m_estimate = Segments(tcb);
        }
        else if (avoidance)
        {
            const double alpha = m_estimate < m_windowBefore ? 3 * (1 - BETA) / (1 + BETA) : 1.0;
            m_estimate += alpha * segmentsAcked / Segments(tcb);
        }
        TcpCubic::IncreaseWindow(tcb, segmentsAcked);
        if (avoidance && m_estimate > Segments(tcb))
        {
            tcb->m_cWnd = static_cast<uint32_t>(m_estimate * tcb->m_segmentSize);
        }
    }

    uint32_t GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> tcb, uint32_t bytesInFlight) override
    {
        m_windowBefore = Segments(tcb);
        m_estimate = 0;
        return TcpCubic::GetSsThresh(tcb, bytesInFlight);
    }

    ns3::Ptr<ns3::TcpCongestionOps> Fork() override
    {
        return ns3::CopyObject<RenoFriendlyCubic>(this);
    }

  private:
    static constexpr double BETA = 0.7;

    static double Segments(ns3::Ptr<const ns3::TcpSocketState> tcb)
    {
        return static_cast<double>(tcb->m_cWnd.Get()) / tcb->m_segmentSize;
    }

    double m_windowBefore{0}; // segments, when the last loss was detected; 0 before the first
    double m_estimate{0};     // W_est in segments; 0 until the epoch opens
};
